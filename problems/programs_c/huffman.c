/* Huffman coding: counts, a tree, canonical codes, bits written and read back. */
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

enum { SYMBOLS = 64, LENGTH = 700 };

static u8 input[LENGTH], output[LENGTH], packed[LENGTH * 2];
static u32 weight[2 * SYMBOLS], code[SYMBOLS];
static int parent[2 * SYMBOLS], length[SYMBOLS], order[SYMBOLS];

static int lightest(int n) {
    int best = -1;
    for (int i = 0; i < n; i++)
        if (weight[i] && !parent[i] && (best < 0 || weight[i] < weight[best])) best = i;
    return best;
}

static void tree(void) {
    int n = SYMBOLS;
    for (;;) {
        int a = lightest(n);
        parent[a] = n;
        int b = lightest(n);
        if (b < 0) {
            parent[a] = 0;
            break;
        }
        parent[b] = n;
        weight[n++] = weight[a] + weight[b];
    }
    for (int i = 0; i < SYMBOLS; i++) {
        length[i] = 0;
        if (weight[i])
            for (int j = i; parent[j]; j = parent[j]) length[i]++;
    }
}

static int canonical(void) {
    int used = 0;
    for (int bits = 1; bits < 32; bits++)
        for (int i = 0; i < SYMBOLS; i++)
            if (length[i] == bits) order[used++] = i;
    u32 next = 0;
    for (int i = 0; i < used; i++) {
        if (i) next = (next + 1) << (length[order[i]] - length[order[i - 1]]);
        code[order[i]] = next;
    }
    return used;
}

static u32 encode(void) {
    u32 position = 0;
    for (int i = 0; i < LENGTH * 2; i++) packed[i] = 0;
    for (int i = 0; i < LENGTH; i++)
        for (int bit = length[input[i]]; bit-- > 0; position++)
            packed[position / 8] |= (u8)((code[input[i]] >> bit & 1) << (7 - position % 8));
    return position;
}

static void decode(int used) {
    u32 position = 0;
    for (int i = 0; i < LENGTH; i++) {
        u32 value = 0;
        int bits = 0, found = -1;
        for (int j = 0; j < used && found < 0; j++) {
            for (; bits < length[order[j]]; bits++, position++)
                value = value << 1 | (packed[position / 8] >> (7 - position % 8) & 1);
            if (code[order[j]] == value) found = order[j];
        }
        output[i] = (u8)found;
    }
}

u64 run(u64 seed) {
    u64 state = seed;
    for (int i = 0; i < 2 * SYMBOLS; i++) weight[i] = 0, parent[i] = 0;
    for (int i = 0; i < LENGTH; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        u32 a = (u32)(state >> 58), b = (u32)(state >> 50) % SYMBOLS;
        input[i] = (u8)(a < b ? a : b);
        weight[input[i]]++;
    }
    tree();
    int used = canonical();
    u64 sum = encode();
    decode(used);
    for (int i = 0; i < LENGTH; i++) sum = sum * 31 + output[i] + (output[i] != input[i]) * 1000000;
    return sum;
}
