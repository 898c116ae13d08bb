/* A library for JSON: a generator, a parser into nodes, a printer, look-ups by path, comparison, sorting of keys. */
typedef unsigned long long u64;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned char u8;

enum { TEXT = 4096, NODES = 512, DEPTH = 6 };
enum { NONE, TRUE, FALSE, NUMBER, STRING, LIST, MAP };

typedef struct {
    u8 kind;
    int key, length; /* the key's place and length in the text */
    int start, size; /* of a string */
    i64 number;
    int child, next;
} Node;

static u8 text[TEXT], copy[TEXT];
static Node nodes[NODES];
static int used, at, failed;

static u64 next(u64 *state) {
    u64 x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static int put(u8 *out, int n, int c) {
    if (n < TEXT - 1) out[n++] = (u8)c;
    return n;
}

static int put_text(u8 *out, int n, const char *s) {
    while (*s) n = put(out, n, *s++);
    return n;
}

static int put_number(u8 *out, int n, i64 value) {
    u8 digits[24];
    int count = 0;
    u64 rest = value < 0 ? 0 - (u64)value : (u64)value;
    if (value < 0) n = put(out, n, '-');
    do digits[count++] = (u8)('0' + rest % 10);
    while (rest /= 10);
    while (count) n = put(out, n, digits[--count]);
    return n;
}

static int put_hex(u8 *out, int n, u32 value) {
    for (int shift = 12; shift >= 0; shift -= 4) n = put(out, n, "0123456789abcdef"[value >> shift & 15]);
    return n;
}

static int put_word(u64 *state, u8 *out, int n) {
    static const char *const words[] = {"name", "size", "left", "right", "kind", "x\\n", "y\\u0041", "tail", "\\\\", ""};
    n = put(out, n, '"');
    n = put_text(out, n, words[next(state) % 10]);
    if (next(state) % 3 == 0) n = put_number(out, n, (i64)(next(state) % 50));
    return put(out, n, '"');
}

static int make(u64 *state, u8 *out, int n, int depth) {
    u64 kind = next(state) % (depth ? 9 : 5);
    if (n > TEXT - 400) kind = 0;
    if (kind < 5) {
        if (kind == 0) return put_text(out, n, "null");
        if (kind == 1) return put_text(out, n, next(state) & 1 ? "true" : "false");
        if (kind == 2) return put_word(state, out, n);
        return put_number(out, n, (i64)(next(state) >> 40) - (1 << 23));
    }
    int count = (int)(next(state) % 5), map = kind > 6;
    n = put(out, n, map ? '{' : '[');
    for (int i = 0; i < count; i++) {
        if (i) n = put(out, n, ',');
        if (next(state) & 1) n = put(out, n, ' ');
        if (map) n = put(out, put_word(state, out, n), ':');
        n = make(state, out, n, depth - 1);
    }
    return put(out, n, map ? '}' : ']');
}

static void skip(void) {
    while (text[at] == ' ' || text[at] == '\n' || text[at] == '\t') at++;
}

static int expect(const char *word) {
    int from = at;
    for (; *word; word++, at++) {
        if (text[at] != (u8)*word) {
            at = from;
            return 0;
        }
    }
    return 1;
}

static int read_string(int *start, int *size) {
    if (text[at] != '"') return 0;
    *start = ++at;
    while (text[at] && text[at] != '"') at += text[at] == '\\' && text[at + 1] ? 2 : 1;
    *size = at - *start;
    if (!text[at]) return 0;
    at++;
    return 1;
}

static i64 read_number(void) {
    int minus = text[at] == '-';
    u64 value = 0;
    at += minus;
    if (text[at] < '0' || text[at] > '9') failed = 1;
    while (text[at] >= '0' && text[at] <= '9') value = value * 10 + (u64)(text[at++] - '0');
    return (i64)(minus ? 0 - value : value);
}

static int parse(int depth);

static void parse_inside(int node, int map, int depth) {
    int last = -1;
    u8 end = map ? '}' : ']';
    at++;
    for (skip(); text[at] != end && !failed; skip()) {
        int start = 0, size = 0;
        if (last >= 0 && !expect(",")) failed = 1;
        skip();
        if (map && (!read_string(&start, &size) || !expect(":"))) failed = 1;
        int child = failed ? -1 : parse(depth - 1);
        if (child < 0) return;
        nodes[child].key = start, nodes[child].length = size;
        if (last < 0) nodes[node].child = child;
        else nodes[last].next = child;
        last = child;
    }
    at++;
}

static int parse(int depth) {
    if (used == NODES || depth < 0) failed = 1;
    if (failed) return -1;
    int node = used++;
    Node *n = &nodes[node];
    n->key = n->length = n->start = n->size = 0;
    n->number = 0;
    n->child = n->next = -1;
    skip();
    switch (text[at]) {
    case 'n': n->kind = NONE, failed = !expect("null"); break;
    case 't': n->kind = TRUE, failed = !expect("true"); break;
    case 'f': n->kind = FALSE, failed = !expect("false"); break;
    case '"': n->kind = STRING, failed = !read_string(&n->start, &n->size); break;
    case '[': n->kind = LIST, parse_inside(node, 0, depth); break;
    case '{': n->kind = MAP, parse_inside(node, 1, depth); break;
    default: n->kind = NUMBER, n->number = read_number();
    }
    return node;
}

static int same(int a, int b, int length) {
    while (length && text[a] == text[b]) a++, b++, length--;
    return !length;
}

static int less(const Node *a, const Node *b) {
    int shorter = a->length < b->length ? a->length : b->length;
    for (int i = 0; i < shorter; i++)
        if (text[a->key + i] != text[b->key + i]) return text[a->key + i] < text[b->key + i];
    return a->length < b->length;
}

static int merge(int a, int b) {
    int head = -1, last = -1;
    while (a >= 0 || b >= 0) {
        int *from = b < 0 || (a >= 0 && !less(&nodes[b], &nodes[a])) ? &a : &b, taken = *from;
        *from = nodes[taken].next;
        if (last < 0) head = taken;
        else nodes[last].next = taken;
        last = taken;
        nodes[taken].next = -1;
    }
    return head;
}

static int sort(int list) {
    if (list < 0 || nodes[list].next < 0) return list;
    int slow = list;
    for (int fast = nodes[list].next; fast >= 0 && nodes[fast].next >= 0; fast = nodes[nodes[fast].next].next)
        slow = nodes[slow].next;
    int second = nodes[slow].next;
    nodes[slow].next = -1;
    return merge(sort(list), sort(second));
}

static void sort_keys(int node) {
    if (nodes[node].kind == MAP) nodes[node].child = sort(nodes[node].child);
    for (int child = nodes[node].child; child >= 0; child = nodes[child].next) sort_keys(child);
}

static int equal(int a, int b) {
    const Node *x = &nodes[a], *y = &nodes[b];
    if (x->kind != y->kind || x->number != y->number || x->size != y->size || x->length != y->length) return 0;
    if (!same(x->start, y->start, x->size) || !same(x->key, y->key, x->length)) return 0;
    int p = x->child, q = y->child;
    for (; p >= 0 && q >= 0; p = nodes[p].next, q = nodes[q].next)
        if (!equal(p, q)) return 0;
    return p == q;
}

static u32 unescaped(int start, int size) {
    u32 h = 2166136261u;
    for (int i = 0; i < size; i++) {
        u32 c = text[start + i];
        if (c == '\\' && i + 1 < size) {
            c = text[start + ++i];
            if (c == 'n') c = 10;
            else if (c == 'u') {
                c = 0;
                for (int k = 0; k < 4 && i + 1 < size; k++) {
                    u32 d = text[start + ++i];
                    c = c * 16 + (d <= '9' ? d - '0' : (d | 32) - 'a' + 10);
                }
            }
        }
        h = (h ^ c) * 16777619u;
    }
    return h;
}

static int find(int node, u32 hash) {
    for (int child = nodes[node].child; child >= 0; child = nodes[child].next)
        if (nodes[node].kind == MAP && unescaped(nodes[child].key, nodes[child].length) == hash) return child;
    return -1;
}

static int print(int node, int n, int indent) {
    const Node *x = &nodes[node];
    if (x->length || x->key) {
        n = put(copy, n, '"');
        for (int i = 0; i < x->length; i++) n = put(copy, n, text[x->key + i]);
        n = put_text(copy, n, "\": ");
    }
    if (x->kind == NONE) return put_text(copy, n, "null");
    if (x->kind == TRUE || x->kind == FALSE) return put_text(copy, n, x->kind == TRUE ? "true" : "false");
    if (x->kind == NUMBER) return put_number(copy, n, x->number);
    if (x->kind == STRING) return put_hex(copy, n, unescaped(x->start, x->size));
    n = put(copy, n, x->kind == LIST ? '[' : '{');
    for (int child = x->child; child >= 0; child = nodes[child].next) {
        n = put(copy, n, '\n');
        for (int i = 0; i < indent; i++) n = put(copy, n, ' ');
        n = print(child, n, indent + 2);
        if (nodes[child].next >= 0) n = put(copy, n, ',');
    }
    return put(copy, n, x->kind == LIST ? ']' : '}');
}

static i64 total(int node, int *deepest, int depth) {
    i64 sum = nodes[node].number;
    if (depth > *deepest) *deepest = depth;
    for (int child = nodes[node].child; child >= 0; child = nodes[child].next)
        sum += total(child, deepest, depth + 1);
    return sum;
}

u64 run(u64 seed) {
    u64 state = seed | 1, sum = 0;
    for (int round = 0; round < 12; round++) {
        int length = make(&state, text, 0, DEPTH), deepest = 0;
        text[length] = 0;
        if (round % 4 == 3) text[next(&state) % (u64)(length + 1)] = '?';
        used = at = failed = 0;
        int first = parse(DEPTH + 1);
        sum = sum * 1000003 + (u64)used * 2 + (u64)failed;
        if (failed || first < 0) continue;
        at = 0;
        int second = parse(DEPTH + 1);
        if (second >= 0 && !failed) sum = sum * 31 + (u64)equal(first, second);
        sort_keys(first);
        if (second >= 0 && !failed) sum = sum * 31 + (u64)equal(first, second);
        sum += (u64)total(first, &deepest, 0) * 31 + (u64)deepest;
        int found = find(first, 2166136261u);
        if (found >= 0) sum += (u64)nodes[found].kind;
        int n = print(first, 0, 2);
        for (int i = 0; i < n; i++) sum = sum * 31 + copy[i];
    }
    return sum;
}
