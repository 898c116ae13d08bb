/* LZ77 with a hash of three bytes and lazy matches, and its decompression. */
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

enum { LENGTH = 2500, TABLE = 1024, SHORTEST = 3, LONGEST = 33 };

static u8 input[LENGTH], packed[LENGTH * 2], output[LENGTH];
static int head[TABLE];

static u32 hash3(const u8 *p) { return ((u32)p[0] << 10 ^ (u32)p[1] << 5 ^ p[2]) % TABLE; }

static int match(int a, int b) {
    int n = 0;
    while (b + n < LENGTH && n < LONGEST && input[a + n] == input[b + n]) n++;
    return n;
}

static int longest(int position, int *offset) {
    if (position + SHORTEST > LENGTH) return 0;
    int candidate = head[hash3(input + position)];
    if (candidate < 0 || position - candidate > 1023) return 0;
    *offset = position - candidate;
    return match(candidate, position);
}

static void remember(int position) {
    if (position + SHORTEST <= LENGTH) head[hash3(input + position)] = position;
}

static int compress(void) {
    int out = 0;
    for (int i = 0; i < TABLE; i++) head[i] = -1;
    for (int position = 0; position < LENGTH;) {
        int offset = 0, later = 0, n = longest(position, &offset);
        remember(position);
        if (n >= SHORTEST && n < longest(position + 1, &later)) n = 0;
        if (n >= SHORTEST) {
            u32 token = 1u << 15 | (u32)(n - SHORTEST) << 10 | (u32)offset;
            packed[out++] = (u8)(token >> 8);
            packed[out++] = (u8)token;
            for (int i = 1; i < n; i++) remember(position + i);
            position += n;
        } else {
            packed[out++] = input[position++];
        }
    }
    return out;
}

static int expand(int n) {
    int out = 0;
    for (int i = 0; i < n;) {
        if (packed[i] & 128) {
            u32 token = (u32)packed[i] << 8 | packed[i + 1];
            int count = (int)(token >> 10 & 31) + SHORTEST, offset = (int)(token & 1023);
            for (; count--; out++) output[out] = output[out - offset];
            i += 2;
        } else {
            output[out++] = packed[i++];
        }
    }
    return out;
}

u64 run(u64 seed) {
    u64 state = seed, sum = 0;
    for (int i = 0; i < LENGTH;) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        int back = (int)(state >> 40) % 200 + 1, count = (int)(state >> 50) % 20 + 1;
        if (i > 200 && (state >> 33) % 3)
            for (; count-- && i < LENGTH; i++) input[i] = input[i - back];
        else
            input[i++] = (u8)(state >> 57);
    }
    int size = compress();
    sum = (u64)size * 100003 + (u64)expand(size);
    for (int i = 0; i < LENGTH; i++) sum = sum * 31 + output[i] + (u64)(output[i] != input[i]) * 999;
    for (int i = 0; i < size; i++) sum ^= (u64)packed[i] << (i % 56);
    return sum;
}
