/* A store of records: a growing hash table with text keys, an ordered tree, a cache of recent use, a filter, a log. */
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

enum { RECORDS = 400, ARENA = 8000, MOST = 1024, RECENT = 16, WORDS = 32, LOG = 6000 };

typedef struct {
    int text, length;
    u64 amount;
    int left, right, level; /* of the tree */
    int newer, older;       /* of the list of recent use */
    u8 alive, cached;
} Record;

static u8 arena[ARENA], journal[LOG];
static Record records[RECORDS];
static int slots[MOST], spare[MOST];
static int capacity, filled, buried, made, held, root, newest, oldest, cached, written;
static u64 filter[WORDS];

static u64 next(u64 *state) {
    u64 x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static u32 hash(const u8 *key, int n, u32 h) {
    while (n--) h = (h ^ *key++) * 16777619u;
    return h ^ h >> 15;
}

static int same(const u8 *a, const u8 *b, int n) {
    while (n && *a == *b) a++, b++, n--;
    return !n;
}

static int compare(const Record *a, const Record *b) {
    int n = a->length < b->length ? a->length : b->length;
    for (int i = 0; i < n; i++) {
        int d = arena[a->text + i] - arena[b->text + i];
        if (d) return d;
    }
    return a->length - b->length;
}

static void mark(const u8 *key, int n) {
    for (u32 k = 1; k <= 3; k++) {
        u32 bit = hash(key, n, k * 2166136261u) % (WORDS * 64);
        filter[bit / 64] |= 1ull << bit % 64;
    }
}

static int marked(const u8 *key, int n) {
    for (u32 k = 1; k <= 3; k++) {
        u32 bit = hash(key, n, k * 2166136261u) % (WORDS * 64);
        if (!(filter[bit / 64] >> bit % 64 & 1)) return 0;
    }
    return 1;
}

static int slot_of(const u8 *key, int n) {
    int i = (int)(hash(key, n, 2166136261u) & (u32)(capacity - 1)), grave = -1;
    for (int step = 1; slots[i] != -1; i = (i + step++) & (capacity - 1)) {
        if (slots[i] == -2) {
            if (grave < 0) grave = i;
        } else if (records[slots[i]].length == n && same(arena + records[slots[i]].text, key, n)) {
            return i;
        }
    }
    return grave < 0 ? i : grave;
}

static void clear(int size) {
    capacity = size;
    for (int i = 0; i < size; i++) slots[i] = -1;
}

static void grow(void) {
    int old = capacity;
    for (int i = 0; i < old; i++) spare[i] = slots[i];
    clear(filled * 2 > old && old < MOST ? old * 2 : old);
    filled = buried = 0;
    for (int i = 0; i < old; i++) {
        if (spare[i] < 0) continue;
        slots[slot_of(arena + records[spare[i]].text, records[spare[i]].length)] = spare[i];
        filled++;
    }
}

static int level(int node) { return node < 0 ? 0 : records[node].level; }

static void update(int node) {
    int l = level(records[node].left), r = level(records[node].right);
    records[node].level = (l > r ? l : r) + 1;
}

static int rotate_right(int node) {
    int top = records[node].left;
    records[node].left = records[top].right;
    records[top].right = node;
    update(node);
    update(top);
    return top;
}

static int rotate_left(int node) {
    int top = records[node].right;
    records[node].right = records[top].left;
    records[top].left = node;
    update(node);
    update(top);
    return top;
}

static int balanced(int node) {
    Record *r = &records[node];
    update(node);
    int lean = level(r->left) - level(r->right);
    if (lean > 1) {
        if (level(records[r->left].left) < level(records[r->left].right)) r->left = rotate_left(r->left);
        return rotate_right(node);
    }
    if (lean < -1) {
        if (level(records[r->right].right) < level(records[r->right].left)) r->right = rotate_right(r->right);
        return rotate_left(node);
    }
    return node;
}

static int plant(int node, int added) {
    if (node < 0) return added;
    if (compare(&records[added], &records[node]) < 0) records[node].left = plant(records[node].left, added);
    else records[node].right = plant(records[node].right, added);
    return balanced(node);
}

static u64 walk(int node, u64 sum) {
    if (node < 0) return sum;
    sum = walk(records[node].left, sum);
    if (records[node].alive) sum = sum * 31 + records[node].amount + (u64)records[node].length;
    return walk(records[node].right, sum);
}

static void unlink(int i) {
    Record *r = &records[i];
    if (r->newer < 0) newest = r->older;
    else records[r->newer].older = r->older;
    if (r->older < 0) oldest = r->newer;
    else records[r->older].newer = r->newer;
    r->cached = 0;
    cached--;
}

static void use(int i) {
    if (records[i].cached) unlink(i);
    records[i].newer = -1;
    records[i].older = newest;
    if (newest >= 0) records[newest].newer = i;
    else oldest = i;
    newest = i;
    records[i].cached = 1;
    if (++cached > RECENT) unlink(oldest);
}

static void note_number(u64 x) {
    for (; x >= 128 && written < LOG; x >>= 7) journal[written++] = (u8)(x | 128);
    if (written < LOG) journal[written++] = (u8)x;
}

static void note(u8 what, int record, u64 amount) {
    if (written < LOG) journal[written++] = what;
    note_number((u64)record);
    note_number(amount);
}

static int find(const u8 *key, int n) {
    if (!marked(key, n)) return -1;
    int found = slots[slot_of(key, n)];
    if (found >= 0) use(found);
    return found;
}

static void put(const u8 *key, int n, u64 amount) {
    int at = slot_of(key, n), i = slots[at];
    if (i < 0) {
        if (made == RECORDS || held + n > ARENA) return;
        if (i == -2) buried--;
        i = slots[at] = made++;
        records[i] = (Record){held, n, 0, -1, -1, 1, -1, -1, 1, 0};
        for (int k = 0; k < n; k++) arena[held++] = key[k];
        mark(key, n);
        root = plant(root, i);
        filled++;
    }
    records[i].amount += amount;
    use(i);
    note('+', i, amount);
    if ((filled + buried) * 4 > capacity * 3) grow();
}

static int drop(const u8 *key, int n) {
    int at = slot_of(key, n), i = slots[at];
    if (i < 0) return 0;
    slots[at] = -2;
    buried++;
    filled--;
    records[i].alive = 0;
    if (records[i].cached) unlink(i);
    note('-', i, records[i].amount);
    return 1;
}

static u64 replay(void) {
    u64 sum = 0;
    for (int i = 0; i < written;) {
        u64 fields[2] = {0, 0};
        u8 what = journal[i++];
        for (int f = 0; f < 2; f++) {
            int shift = 0;
            do fields[f] |= (u64)(journal[i] & 127) << shift, shift += 7;
            while (journal[i++] & 128 && i < written && shift < 63);
        }
        sum = sum * 31 + (what == '+' ? fields[1] : ~fields[1]) + fields[0];
    }
    return sum;
}

static int make_key(u64 *state, u8 *key) {
    static const char *const parts[] = {"user", "item", "cart", "page", "tag"};
    u64 r = next(state);
    int n = 0;
    for (const char *s = parts[r % 5]; *s; s++) key[n++] = (u8)*s;
    key[n++] = '/';
    for (u64 id = (r >> 8) % 90; ; id /= 10) {
        key[n++] = (u8)('0' + id % 10);
        if (id < 10) return n;
    }
}

u64 run(u64 seed) {
    u64 state = seed | 1, sum = 0;
    u8 key[32];
    filled = buried = made = held = cached = written = 0;
    root = newest = oldest = -1;
    for (int i = 0; i < WORDS; i++) filter[i] = 0;
    clear(16);
    for (int i = 0; i < 900; i++) {
        int n = make_key(&state, key);
        u64 what = next(&state) % 8;
        if (what < 4) put(key, n, next(&state) % 500);
        else if (what < 5) sum += (u64)drop(key, n);
        else sum = sum * 31 + (u64)(find(key, n) + 1);
    }
    for (int i = newest; i >= 0; i = records[i].older) sum = sum * 31 + records[i].amount;
    return walk(root, sum) + replay() + (u64)(capacity + filled * 7 + buried);
}
