/* Base64, base32 and hexadecimal, encoded, decoded and checked; also broken input. */
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

enum { LENGTH = 601 };

static u8 input[LENGTH], text[LENGTH * 2 + 8], back[LENGTH + 8];

static u8 digit64(u32 v) {
    if (v < 26) return (u8)('A' + v);
    if (v < 52) return (u8)('a' + v - 26);
    if (v < 62) return (u8)('0' + v - 52);
    return v == 62 ? '+' : '/';
}

static int value64(u8 c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static int encode64(int n) {
    int out = 0;
    for (int i = 0; i < n; i += 3) {
        u32 group = (u32)input[i] << 16;
        if (i + 1 < n) group |= (u32)input[i + 1] << 8;
        if (i + 2 < n) group |= input[i + 2];
        text[out++] = digit64(group >> 18);
        text[out++] = digit64(group >> 12 & 63);
        text[out++] = i + 1 < n ? digit64(group >> 6 & 63) : '=';
        text[out++] = i + 2 < n ? digit64(group & 63) : '=';
    }
    return out;
}

static int decode64(int n) {
    int out = 0;
    for (int i = 0; i + 3 < n; i += 4) {
        u32 group = 0;
        int pads = 0;
        for (int j = 0; j < 4; j++) {
            u8 c = text[i + j];
            int v = value64(c);
            if (c == '=') pads++, v = 0;
            if (v < 0 || (pads && c != '=')) return -i;
            group = group << 6 | (u32)v;
        }
        back[out++] = (u8)(group >> 16);
        if (pads < 2) back[out++] = (u8)(group >> 8);
        if (pads < 1) back[out++] = (u8)group;
    }
    return out;
}

static int encode32(int n) {
    int out = 0, bits = 0;
    u32 buffer = 0;
    for (int i = 0; i < n; i++) {
        buffer = buffer << 8 | input[i];
        for (bits += 8; bits >= 5; bits -= 5) text[out++] = (u8) "abcdefghijklmnopqrstuvwxyz234567"[buffer >> (bits - 5) & 31];
        buffer &= (1u << bits) - 1;
    }
    if (bits) text[out++] = (u8) "abcdefghijklmnopqrstuvwxyz234567"[buffer << (5 - bits) & 31];
    return out;
}

static int hexadecimal(int n) {
    for (int i = 0; i < n; i++) {
        int high = input[i] >> 4, low = input[i] & 15;
        text[2 * i] = (u8)(high < 10 ? '0' + high : 'a' + high - 10);
        text[2 * i + 1] = (u8)(low < 10 ? '0' + low : 'a' + low - 10);
    }
    return 2 * n;
}

static u64 digest(const u8 *p, int n, u64 sum) {
    for (int i = 0; i < n; i++) sum = (sum ^ p[i]) * 1099511628211ull;
    return sum;
}

u64 run(u64 seed) {
    u64 state = seed, sum = 0;
    for (int i = 0; i < LENGTH; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        input[i] = (u8)(state >> 45);
    }
    for (int n = LENGTH - 2; n <= LENGTH; n++) {
        int size = encode64(n), same = decode64(size) == n;
        for (int i = 0; i < n; i++) same &= back[i] == input[i];
        sum = digest(text, size, sum) + (u64)same;
        text[(seed + (u64)n) % 500] = '!';
        sum = sum * 31 + (u64)decode64(size);
        sum = digest(text, encode32(n), sum);
        sum = digest(text, hexadecimal(n), sum);
    }
    return sum;
}
