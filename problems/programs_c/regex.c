/* Regular expressions: a backtracking matcher of . * + ? ^ $ and classes, and a simulated automaton of the same. */
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

enum { STATES = 16, LENGTH = 60 };

typedef struct {
    u8 low, high, many, optional;
} Item;

static Item items[STATES];
static int count, anchored, to_end;
static char text[LENGTH + 1];

static void compile(const char *p) {
    count = 0;
    anchored = *p == '^';
    p += anchored;
    to_end = 0;
    while (*p) {
        if (*p == '$' && !p[1]) {
            to_end = 1;
            return;
        }
        Item *item = &items[count++];
        item->many = item->optional = 0;
        if (*p == '.') {
            item->low = 1, item->high = 127;
            p++;
        } else if (*p == '[') {
            item->low = (u8)p[1], item->high = (u8)p[3];
            p += 5;
        } else {
            item->low = item->high = (u8)*p++;
        }
        if (*p == '*' || *p == '+') item->many = 1;
        if (*p == '*' || *p == '?') item->optional = 1;
        if (item->many || item->optional) p++;
    }
}

static int fits(const Item *item, char c) { return (u8)c >= item->low && (u8)c <= item->high; }

static int match_here(int i, const char *s) {
    if (i == count) return !to_end || !*s;
    const Item *item = &items[i];
    if (!item->many) {
        if (*s && fits(item, *s) && match_here(i + 1, s + 1)) return 1;
        return item->optional && match_here(i + 1, s);
    }
    const char *end = s;
    while (*end && fits(item, *end)) end++;
    for (const char *least = item->optional ? s : s + 1; end >= least; end--)
        if (match_here(i + 1, end)) return 1;
    return 0;
}

static int search(const char *s) {
    for (int at = 0;; at++) {
        if (match_here(0, s + at)) return at;
        if (anchored || !s[at]) return -1;
    }
}

static u32 closure(u32 states) {
    for (int i = 0; i < count; i++)
        if (states >> i & 1 && items[i].optional) states |= 1u << (i + 1);
    return states;
}

static int simulate(const char *s) {
    u32 states = closure(1);
    for (;; s++) {
        if (states >> count & 1 && (!to_end || !*s)) return 1;
        if (!*s) return 0;
        u32 next = anchored ? 0 : 1;
        for (int i = 0; i < count; i++)
            if (states >> i & 1 && fits(&items[i], *s)) {
                next |= 1u << (i + 1);
                if (items[i].many) next |= closure(1u << i) | 1u << i;
            }
        states = closure(next);
    }
}

u64 run(u64 seed) {
    static const char *const patterns[] = {"ab*c", "^a+b", "c.[a-c]+$", "a?b?c?d", "[b-d]*a", "^.*aa", "bc+d$", "a.b.c"};
    u64 state = seed, sum = 0;
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < LENGTH; i++) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            text[i] = (char)('a' + (state >> 61) % 4);
        }
        text[LENGTH] = 0;
        for (int i = 0; i < 8; i++) {
            compile(patterns[i]);
            int at = search(text);
            sum = sum * 67 + (u64)(at + 1) * 2 + (u64)(simulate(text) == (at >= 0));
        }
    }
    return sum;
}
