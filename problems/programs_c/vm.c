/* A stack machine: an assembler of four programs, and the interpreter that runs them. */
typedef unsigned long long u64;
typedef long long i64;
typedef unsigned char u8;

enum { PUSH, ADD, SUB, MUL, MOD, DUP, SWAP, LOAD, STORE, LESS, EQUAL, JUMP, ZERO, CALL, BACK, PEEK, POKE, HALT };
enum { CELLS = 64, DEPTH = 40 };

static const char *const sources[] = {
    /* the sum of the squares of the odd numbers below the input */
    "p0 s1 p1 s2 l2 l0 < z27 l2 d * l1 + s1 l2 p2 + s2 j4 l1 h",
    /* greatest common divisor of the input and 360 */
    "l0 s1 p360 s2 l2 z17 l2 l1 l2 % s2 s1 j4 l1 h",
    /* Fibonacci, by recursion */
    "l0 p12 % c7 h h h d p2 < z12 b b d p1 - c7 x p2 - c7 + b",
    /* a sieve */
    "p2 s1 p40 l1 < z6 h l1 ? z10 j25 l1 l1 + s2 p40 l2 < z18 j25 p1 l2 ! l2 l1 + s2 j12 l1 p1 + s1 j2",
};

static u8 code[128];
static int argument[128];
static i64 stack[DEPTH], memory[CELLS];
static int returns[DEPTH];

static int assemble(const char *s) {
    static const char letters[] = "p+-*%dxls<=jzcb?!h";
    int n = 0;
    while (*s) {
        if (*s == ' ') {
            s++;
            continue;
        }
        u8 op = 0;
        while (letters[op] != *s) op++;
        code[n] = op;
        argument[n] = 0;
        for (s++; *s >= '0' && *s <= '9'; s++) argument[n] = argument[n] * 10 + (*s - '0');
        n++;
    }
    return n;
}

static u64 execute(int n, i64 input, int fuel) {
    int top = 0, depth = 0, at = 0;
    u64 trace = 0;
    for (int i = 0; i < CELLS; i++) memory[i] = 0;
    memory[0] = input;
    while (at < n && fuel-- && top < DEPTH - 2 && depth < DEPTH - 1) {
        int x = argument[at], needed = code[at] == PUSH || code[at] == LOAD ? 0 : 2;
        i64 a = top > 1 ? stack[top - 2] : 0, b = top > 0 ? stack[top - 1] : 0;
        trace = trace * 31 + code[at] + (u64)b * (u64)(needed > 0);
        switch (code[at++]) {
        case PUSH: stack[top++] = x; break;
        case ADD: stack[--top - 1] = (i64)((u64)a + (u64)b); break;
        case SUB: stack[--top - 1] = (i64)((u64)a - (u64)b); break;
        case MUL: stack[--top - 1] = (i64)((u64)a * (u64)b); break;
        case MOD: stack[--top - 1] = b > 0 ? a % b : 0; break;
        case DUP: stack[top++] = b; break;
        case SWAP: stack[top - 1] = a, stack[top - 2] = b; break;
        case LOAD: stack[top++] = memory[x % CELLS]; break;
        case STORE: memory[x % CELLS] = b, top--; break;
        case LESS: stack[--top - 1] = a < b; break;
        case EQUAL: stack[--top - 1] = a == b; break;
        case JUMP: at = x; break;
        case ZERO: if (!b) at = x; top--; break;
        case CALL: returns[depth++] = at, at = x; break;
        case BACK: if (!depth) return trace; at = returns[--depth]; break;
        case PEEK: stack[top - 1] = memory[(u64)b % CELLS]; break;
        case POKE: memory[(u64)b % CELLS] = a, top -= 2; break;
        default: return trace * 31 + (u64)b;
        }
        if (top < 1) stack[0] = 0, top = 1;
    }
    return trace;
}

u64 run(u64 seed) {
    u64 sum = 0;
    for (int i = 0; i < 4; i++) {
        int n = assemble(sources[i]);
        for (i64 input = 0; input < 4; input++) sum = sum * 1000003 + execute(n, (i64)(seed % 97) + input * 5, 900);
    }
    return sum;
}
