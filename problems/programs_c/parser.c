/* A recursive-descent parser of arithmetic into a tree, its simplification and its value. */
typedef unsigned long long u64;
typedef long long i64;

enum { NODES = 600, LENGTH = 900 };

typedef struct {
    char op;
    int left, right;
    i64 value;
} Node;

static Node nodes[NODES];
static int used;
static char text[LENGTH + 4];
static const char *cursor;
static u64 state;

static unsigned roll(unsigned n) {
    state = state * 6364136223846793005ull + 99991;
    return (unsigned)(state >> 35) % n;
}

static char *make(char *out, int depth) {
    if (out - text > LENGTH - 60 || depth == 0 || roll(5) == 0) {
        if (roll(4) == 0) *out++ = (char)('a' + roll(4));
        else for (unsigned n = roll(900) + 1; n; n /= 10) *out++ = (char)('0' + n % 10);
        return out;
    }
    if (roll(6) == 0) *out++ = '-';
    *out++ = '(';
    out = make(out, depth - 1);
    *out++ = "+-*/%"[roll(5)];
    out = make(out, depth - 1);
    *out++ = ')';
    return out;
}

static int node(char op, int left, int right, i64 value) {
    if (used == NODES) used = 0;
    Node *n = &nodes[used];
    n->op = op;
    n->left = left;
    n->right = right;
    n->value = value;
    return used++;
}

static int sum(void);

static int factor(void) {
    if (*cursor == '-') {
        cursor++;
        return node('-', node('n', 0, 0, 0), factor(), 0);
    }
    if (*cursor == '(') {
        cursor++;
        int inside = sum();
        if (*cursor == ')') cursor++;
        return inside;
    }
    if (*cursor >= 'a' && *cursor <= 'd') return node('v', 0, 0, *cursor++ - 'a');
    i64 value = 0;
    while (*cursor >= '0' && *cursor <= '9') value = value * 10 + (*cursor++ - '0');
    return node('n', 0, 0, value);
}

static int term(void) {
    int left = factor();
    while (*cursor == '*' || *cursor == '/' || *cursor == '%') {
        char op = *cursor++;
        left = node(op, left, factor(), 0);
    }
    return left;
}

static int sum(void) {
    int left = term();
    while (*cursor == '+' || *cursor == '-') {
        char op = *cursor++;
        left = node(op, left, term(), 0);
    }
    return left;
}

static i64 apply(char op, i64 a, i64 b) {
    switch (op) {
    case '+': return (i64)((u64)a + (u64)b);
    case '-': return (i64)((u64)a - (u64)b);
    case '*': return (i64)((u64)a * (u64)b);
    case '/': return b > 0 ? a / b : a;
    default: return b > 0 ? a % b : 0;
    }
}

static int simplify(int i) {
    Node *n = &nodes[i];
    if (n->op == 'n' || n->op == 'v') return n->op == 'n';
    int a = simplify(n->left), b = simplify(n->right);
    if (!a || !b) return 0;
    n->value = apply(n->op, nodes[n->left].value, nodes[n->right].value);
    n->op = 'n';
    return 1;
}

static i64 value(int i, const i64 *variables) {
    const Node *n = &nodes[i];
    if (n->op == 'n') return n->value;
    if (n->op == 'v') return variables[n->value];
    return apply(n->op, value(n->left, variables), value(n->right, variables));
}

u64 run(u64 seed) {
    u64 total = 0;
    state = seed;
    for (int round = 0; round < 12; round++) {
        *make(text, 7) = 0;
        cursor = text;
        used = 0;
        int root = sum();
        i64 variables[4] = {3, 5, -7, round}, before = value(root, variables);
        simplify(root);
        total = total * 1000003 + (u64)value(root, variables) + (u64)(before == value(root, variables));
    }
    return total;
}
