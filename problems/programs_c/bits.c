/* Bit tricks: counting, reversal, Gray and Morton codes, permutations, square roots, logarithms. */
typedef unsigned long long u64;
typedef unsigned int u32;

static int count_loop(u64 x) {
    int n = 0;
    for (; x; x &= x - 1) n++;
    return n;
}

static int count_parallel(u64 x) {
    x -= x >> 1 & 0x5555555555555555ull;
    x = (x & 0x3333333333333333ull) + (x >> 2 & 0x3333333333333333ull);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0full;
    return (int)(x * 0x0101010101010101ull >> 56);
}

static u32 reverse(u32 x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    x = (x >> 8 & 0x00ff00ffu) | (x & 0x00ff00ffu) << 8;
    return x >> 16 | x << 16;
}

static u64 morton(u32 x, u32 y) {
    u64 code = 0;
    for (int i = 0; i < 32; i++) {
        code |= (u64)(x >> i & 1) << (2 * i);
        code |= (u64)(y >> i & 1) << (2 * i + 1);
    }
    return code;
}

static u32 from_gray(u32 gray) {
    for (int shift = 16; shift; shift >>= 1) gray ^= gray >> shift;
    return gray;
}

static int log2_floor(u64 x) {
    int n = 0;
    for (int shift = 32; shift; shift >>= 1)
        if (x >> shift) {
            x >>= shift;
            n += shift;
        }
    return n;
}

static u32 root(u64 x) {
    u64 result = 0, bit = 1ull << 62;
    while (bit > x) bit >>= 2;
    for (; bit; bit >>= 2) {
        if (x >= result + bit) {
            x -= result + bit;
            result = (result >> 1) + bit;
        } else {
            result >>= 1;
        }
    }
    return (u32)result;
}

static u64 next_permutation(u64 v) {
    u64 lowest = v & (0 - v), ripple = v + lowest;
    return ripple | (((v ^ ripple) >> 2) / lowest);
}

static u64 rotate(u64 x, int n) { return n ? x << n | x >> (64 - n) : x; }

static int parity(u64 x) {
    for (int shift = 32; shift; shift >>= 1) x ^= x >> shift;
    return (int)(x & 1);
}

u64 run(u64 seed) {
    u64 state = seed | 1, sum = 0, set = 0x1f;
    for (int i = 0; i < 150; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u32 low = (u32)state, high = (u32)(state >> 32);
        sum = rotate(sum, i % 64) + (u64)count_loop(state) * 3 + (u64)count_parallel(state >> 5);
        sum += reverse(low) ^ morton(low, high);
        sum ^= from_gray(high ^ high >> 1) == high ? 5 : 7;
        sum += (u64)log2_floor(state | 1) + root(state) + (u64)parity(state);
        set = next_permutation(set);
        sum ^= set << (i % 7);
    }
    return sum;
}
