/* Ordered trees: AVL insertions, removals and ranges, a trie of words, and a tournament over ranges. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { NODES = 260, LETTERS = 4, TRIE = 500, LEAVES = 64 };

typedef struct {
    u32 key;
    int left, right, height;
} Node;

static Node nodes[NODES];
static int used, trie[TRIE][LETTERS], ends[TRIE], trie_used;
static u32 lows[2 * LEAVES];

static int height(int i) { return i ? nodes[i].height : 0; }

static void measure(int i) {
    int left = height(nodes[i].left), right = height(nodes[i].right);
    nodes[i].height = (left > right ? left : right) + 1;
}

static int turn_right(int i) {
    int top = nodes[i].left;
    nodes[i].left = nodes[top].right;
    nodes[top].right = i;
    measure(i), measure(top);
    return top;
}

static int turn_left(int i) {
    int top = nodes[i].right;
    nodes[i].right = nodes[top].left;
    nodes[top].left = i;
    measure(i), measure(top);
    return top;
}

static int balanced(int i) {
    measure(i);
    Node *n = &nodes[i];
    int lean = height(n->left) - height(n->right);
    if (lean > 1) {
        if (height(nodes[n->left].left) < height(nodes[n->left].right)) n->left = turn_left(n->left);
        return turn_right(i);
    }
    if (lean < -1) {
        if (height(nodes[n->right].right) < height(nodes[n->right].left)) n->right = turn_right(n->right);
        return turn_left(i);
    }
    return i;
}

static int insert(int i, u32 key) {
    if (!i) {
        if (used == NODES - 1) return 0;
        Node fresh = {key, 0, 0, 1};
        nodes[++used] = fresh;
        return used;
    }
    if (key < nodes[i].key) nodes[i].left = insert(nodes[i].left, key);
    else if (key > nodes[i].key) nodes[i].right = insert(nodes[i].right, key);
    return balanced(i);
}

static int erase(int i, u32 key) {
    if (!i) return 0;
    Node *n = &nodes[i];
    if (key < n->key) n->left = erase(n->left, key);
    else if (key > n->key) n->right = erase(n->right, key);
    else if (!n->left || !n->right) return n->left ? n->left : n->right;
    else {
        int least = n->right;
        while (nodes[least].left) least = nodes[least].left;
        n->key = nodes[least].key;
        n->right = erase(n->right, n->key);
    }
    return balanced(i);
}

static u64 within(int i, u32 low, u32 high, u64 sum) {
    if (!i) return sum;
    if (nodes[i].key > low) sum = within(nodes[i].left, low, high, sum);
    if (nodes[i].key >= low && nodes[i].key <= high) sum = sum * 31 + nodes[i].key;
    return nodes[i].key < high ? within(nodes[i].right, low, high, sum) : sum;
}

static int add_word(u32 word, int length) {
    int at = 0;
    for (; length--; word >>= 2) {
        int letter = (int)(word & 3);
        if (!trie[at][letter]) {
            if (trie_used == TRIE - 1) return 0;
            trie[at][letter] = ++trie_used;
        }
        at = trie[at][letter];
    }
    return ++ends[at];
}

static u32 lowest(int from, int to) {
    u32 best = ~0u;
    for (from += LEAVES, to += LEAVES; from < to; from /= 2, to /= 2) {
        if (from & 1) best = lows[from] < best ? lows[from] : best, from++;
        if (to & 1) --to, best = lows[to] < best ? lows[to] : best;
    }
    return best;
}

u64 run(u64 seed) {
    u64 state = seed, sum = 0;
    int root = 0;
    used = trie_used = 0;
    for (int i = 0; i < TRIE; i++) {
        ends[i] = 0;
        for (int j = 0; j < LETTERS; j++) trie[i][j] = 0;
    }
    for (int i = 0; i < 250; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        u32 key = (u32)(state >> 40) % 500;
        root = i % 3 == 2 ? erase(root, key) : insert(root, key);
        sum = sum * 31 + (u64)add_word(key, 2 + i % 4) + (u64)height(root);
        lows[LEAVES + i % LEAVES] = (u32)(state >> 33);
    }
    for (int i = LEAVES - 1; i; i--) lows[i] = lows[2 * i] < lows[2 * i + 1] ? lows[2 * i] : lows[2 * i + 1];
    for (int i = 0; i < 40; i++) sum = sum * 31 + lowest(i, i + 20) + within(root, (u32)i * 5, (u32)i * 11, 0);
    return sum;
}
