/* Random number generators: Mersenne twister, PCG, xoshiro, and a shuffle, a histogram and an area made with them. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { N = 624, M = 397, CARDS = 52 };

static u32 state[N];
static int position;
static u64 pcg_state, shiro[4];

static void seed_twister(u32 seed) {
    state[0] = seed;
    for (u32 i = 1; i < N; i++) state[i] = 1812433253u * (state[i - 1] ^ state[i - 1] >> 30) + i;
    position = N;
}

static u32 twister(void) {
    if (position == N) {
        for (int i = 0; i < N; i++) {
            u32 y = (state[i] & 0x80000000u) | (state[(i + 1) % N] & 0x7fffffffu);
            state[i] = state[(i + M) % N] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        position = 0;
    }
    u32 y = state[position++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

static u32 pcg(void) {
    u64 old = pcg_state;
    pcg_state = old * 6364136223846793005ull + 1442695040888963407ull;
    u32 x = (u32)((old >> 18 ^ old) >> 27), turn = (u32)(old >> 59);
    return x >> turn | x << (-turn & 31);
}

static u64 rotate(u64 x, int n) { return x << n | x >> (64 - n); }

static u64 xoshiro(void) {
    u64 result = rotate(shiro[1] * 5, 7) * 9, t = shiro[1] << 17;
    shiro[2] ^= shiro[0];
    shiro[3] ^= shiro[1];
    shiro[1] ^= shiro[2];
    shiro[0] ^= shiro[3];
    shiro[2] ^= t;
    shiro[3] = rotate(shiro[3], 45);
    return result;
}

static u32 below(u32 n, int kind) {
    u32 x = kind == 0 ? twister() : kind == 1 ? pcg() : (u32)(xoshiro() >> 32);
    return (u32)((u64)x * n >> 32);
}

static u64 shuffle(int kind) {
    u32 cards[CARDS];
    u64 sum = 0;
    for (u32 i = 0; i < CARDS; i++) cards[i] = i;
    for (u32 i = CARDS - 1; i; i--) {
        u32 j = below(i + 1, kind), t = cards[i];
        cards[i] = cards[j];
        cards[j] = t;
    }
    for (u32 i = 0; i < CARDS; i++) sum = sum * 53 + cards[i];
    return sum;
}

static u64 histogram(int kind) {
    u32 counts[16] = {0};
    u64 sum = 0;
    for (int i = 0; i < 500; i++) counts[below(16, kind)]++;
    for (int i = 0; i < 16; i++) sum = sum * 503 + counts[i];
    return sum;
}

static u32 area(int kind) {
    u32 inside = 0;
    for (int i = 0; i < 500; i++) {
        u64 x = below(1u << 16, kind), y = below(1u << 16, kind);
        inside += x * x + y * y < 1ull << 32;
    }
    return inside;
}

u64 run(u64 seed) {
    u64 sum = 0;
    seed_twister((u32)seed);
    pcg_state = seed;
    for (u64 i = 0; i < 4; i++) shiro[i] = seed * (2 * i + 3) + i + 1;
    for (int kind = 0; kind < 3; kind++) sum = sum * 1000003 + (shuffle(kind) ^ histogram(kind)) + area(kind);
    return sum;
}
