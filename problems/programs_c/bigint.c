/* Large integers: factorials, powers, division, greatest common divisors, decimal digits. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { WORDS = 24 };

typedef struct {
    int n;
    u32 words[WORDS];
} Big;

static void trim(Big *a) {
    while (a->n && !a->words[a->n - 1]) a->n--;
}

static Big from(u64 value) {
    Big a = {2, {(u32)value, (u32)(value >> 32)}};
    trim(&a);
    return a;
}

static int compare(const Big *a, const Big *b) {
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    for (int i = a->n; i-- > 0;)
        if (a->words[i] != b->words[i]) return a->words[i] < b->words[i] ? -1 : 1;
    return 0;
}

static Big multiply(const Big *a, const Big *b) {
    Big c = {a->n + b->n < WORDS ? a->n + b->n : WORDS, {0}};
    for (int i = 0; i < a->n; i++) {
        u64 carry = 0;
        for (int j = 0; i + j < c.n; j++) {
            carry += c.words[i + j] + (j < b->n ? (u64)a->words[i] * b->words[j] : 0);
            c.words[i + j] = (u32)carry;
            carry >>= 32;
        }
    }
    trim(&c);
    return c;
}

static void subtract(Big *a, const Big *b) {
    u64 borrow = 0;
    for (int i = 0; i < a->n; i++) {
        u64 d = (u64)a->words[i] - (i < b->n ? b->words[i] : 0) - borrow;
        a->words[i] = (u32)d;
        borrow = d >> 63;
    }
    trim(a);
}

static void shift_in(Big *a, u32 bit) {
    for (int i = 0; i < a->n; i++) {
        u32 out = a->words[i] >> 31;
        a->words[i] = a->words[i] << 1 | bit;
        bit = out;
    }
    if (bit && a->n < WORDS) a->words[a->n++] = bit;
}

static Big remainder(const Big *a, const Big *b) {
    Big r = from(0);
    for (int i = 32 * a->n; i-- > 0;) {
        shift_in(&r, a->words[i / 32] >> (i % 32) & 1);
        if (compare(&r, b) >= 0) subtract(&r, b);
    }
    return r;
}

static u32 divide_small(Big *a, u32 by) {
    u64 rest = 0;
    for (int i = a->n; i-- > 0;) {
        rest = rest << 32 | a->words[i];
        a->words[i] = (u32)(rest / by);
        rest %= by;
    }
    trim(a);
    return (u32)rest;
}

static u64 digits(Big a) {
    u64 sum = 0;
    while (a.n) sum = sum * 13 + divide_small(&a, 10);
    return sum;
}

static Big gcd(Big a, Big b) {
    while (b.n) {
        Big r = remainder(&a, &b);
        a = b;
        b = r;
    }
    return a;
}

u64 run(u64 seed) {
    Big factorial = from(1), power = from(1), base = from(seed % 1000000007 + 2);
    for (u64 i = 2; i <= 30; i++) {
        Big factor = from(i);
        factorial = multiply(&factorial, &factor);
    }
    for (int i = 0; i < 5; i++) power = multiply(&power, &base);
    Big rest = remainder(&power, &factorial), common = gcd(factorial, power);
    return digits(factorial) ^ digits(power) * 3 ^ digits(rest) * 5 ^ digits(common) * 7;
}
