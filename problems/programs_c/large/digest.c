/* Digests and ciphers: SHA-256 with keys, MD5, SipHash, AES with a computed table, ChaCha in counter mode, hexadecimal. */
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

enum { MOST = 300 };

static u8 box[256], inverse[256], keys[176];
static u32 primes[64], sines[64], state256[8];
static u8 message[MOST + 80], letters[2 * MOST];

static u64 next(u64 *state) {
    u64 x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static u32 right(u32 x, int n) { return x >> n | x << (32 - n); }

static u32 left(u32 x, int n) { return x << n | x >> (32 - n); }

static u64 left64(u64 x, int n) { return x << n | x >> (64 - n); }

static u32 big(const u8 *p) { return (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3]; }

static u32 little(const u8 *p) { return (u32)p[3] << 24 | (u32)p[2] << 16 | (u32)p[1] << 8 | p[0]; }

static void store_big(u8 *p, u32 x) {
    for (int i = 0; i < 4; i++) p[i] = (u8)(x >> (24 - 8 * i));
}

static void store_little(u8 *p, u32 x) {
    for (int i = 0; i < 4; i++) p[i] = (u8)(x >> 8 * i);
}

static void constants(void) {
    u32 x = 0x243f6a88u;
    for (int i = 0; i < 64; i++) {
        x = x * 1664525u + 1013904223u;
        primes[i] = x;
        sines[i] = left(x, i % 31 + 1) ^ 0xd76aa478u;
    }
}

static int pad(const u8 *data, int n, int is_big) {
    int whole = (n + 9 + 63) / 64 * 64;
    for (int i = 0; i < whole; i++) message[i] = i < n ? data[i] : 0;
    message[n] = 128;
    if (is_big) store_big(message + whole - 4, (u32)n * 8);
    else store_little(message + whole - 8, (u32)n * 8);
    return whole / 64;
}

static void round256(const u8 *block) {
    u32 w[64], s[8];
    for (int i = 0; i < 16; i++) w[i] = big(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        u32 a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (right(a, 7) ^ right(a, 18) ^ a >> 3) + (right(b, 17) ^ right(b, 19) ^ b >> 10);
    }
    for (int i = 0; i < 8; i++) s[i] = state256[i];
    for (int i = 0; i < 64; i++) {
        u32 one = right(s[4], 6) ^ right(s[4], 11) ^ right(s[4], 25), chosen = (s[4] & s[5]) ^ (~s[4] & s[6]);
        u32 nought = right(s[0], 2) ^ right(s[0], 13) ^ right(s[0], 22);
        u32 most = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]), t = s[7] + one + chosen + primes[i] + w[i];
        for (int k = 7; k; k--) s[k] = s[k - 1];
        s[4] += t;
        s[0] = t + nought + most;
    }
    for (int i = 0; i < 8; i++) state256[i] += s[i];
}

static void sha256(const u8 *data, int n, u8 *out) {
    int blocks = pad(data, n, 1);
    for (int i = 0; i < 8; i++) state256[i] = primes[i] ^ 0x6a09e667u;
    for (int i = 0; i < blocks; i++) round256(message + 64 * i);
    for (int i = 0; i < 8; i++) store_big(out + 4 * i, state256[i]);
}

static void keyed(const u8 *key, const u8 *data, int n, u8 *out) {
    u8 inner[64 + MOST], outer[96];
    for (int i = 0; i < 64; i++) inner[i] = (u8)((i < 32 ? key[i] : 0) ^ 0x36), outer[i] = inner[i] ^ 0x36 ^ 0x5c;
    for (int i = 0; i < n; i++) inner[64 + i] = data[i];
    sha256(inner, 64 + n, outer + 64);
    sha256(outer, 96, out);
}

static u32 mix5(int i, u32 b, u32 c, u32 d) {
    if (i < 16) return (b & c) | (~b & d);
    if (i < 32) return (d & b) | (~d & c);
    if (i < 48) return b ^ c ^ d;
    return c ^ (b | ~d);
}

static void md5(const u8 *data, int n, u8 *out) {
    static const u8 shifts[] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};
    static const u8 steps[] = {1, 5, 3, 7}, starts[] = {0, 1, 5, 0};
    u32 s[4] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u};
    int blocks = pad(data, n, 0);
    for (int block = 0; block < blocks; block++) {
        u32 a = s[0], b = s[1], c = s[2], d = s[3];
        for (int i = 0; i < 64; i++) {
            int word = (i * steps[i / 16] + starts[i / 16]) % 16;
            u32 t = a + mix5(i, b, c, d) + sines[i] + little(message + 64 * block + 4 * word);
            a = d, d = c, c = b;
            b += left(t, shifts[i / 16 * 4 + i % 4]);
        }
        s[0] += a, s[1] += b, s[2] += c, s[3] += d;
    }
    for (int i = 0; i < 4; i++) store_little(out + 4 * i, s[i]);
}

static void sip(u64 *v, int rounds) {
    while (rounds--) {
        v[0] += v[1], v[2] += v[3];
        v[1] = left64(v[1], 13) ^ v[0], v[3] = left64(v[3], 16) ^ v[2];
        v[0] = left64(v[0], 32);
        v[2] += v[1], v[0] += v[3];
        v[1] = left64(v[1], 17) ^ v[2], v[3] = left64(v[3], 21) ^ v[0];
        v[2] = left64(v[2], 32);
    }
}

static u64 siphash(const u8 *data, int n, u64 key) {
    u64 v[4] = {key ^ 0x736f6d6570736575ull, ~key, key + 0x6c7967656e657261ull, key * 3}, word = 0;
    for (int i = 0; i < n; i++) {
        word |= (u64)data[i] << 8 * (i % 8);
        if (i % 8 == 7 || i == n - 1) {
            v[3] ^= word;
            sip(v, 2);
            v[0] ^= word;
            word = 0;
        }
    }
    v[2] ^= 255;
    sip(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static u8 twice(u8 x) { return (u8)(x << 1 ^ (x & 128 ? 27 : 0)); }

static u8 times(u8 a, u8 b) {
    u8 product = 0;
    for (; b; b >>= 1, a = twice(a))
        if (b & 1) product ^= a;
    return product;
}

static void make_box(void) {
    for (int i = 0; i < 256; i++) {
        u8 x = 0, y;
        for (int j = 1; j < 256 && i; j++)
            if (times((u8)i, (u8)j) == 1) x = (u8)j;
        y = x;
        for (int k = 1; k < 5; k++) y ^= (u8)(x << k | x >> (8 - k));
        box[i] = y ^ 99;
        inverse[y ^ 99] = (u8)i;
    }
}

static void expand(const u8 *key) {
    u8 constant = 1;
    for (int i = 0; i < 16; i++) keys[i] = key[i];
    for (int i = 16; i < 176; i += 4) {
        u8 t[4];
        for (int k = 0; k < 4; k++) t[k] = keys[i - 4 + k];
        if (i % 16 == 0) {
            u8 first = t[0];
            for (int k = 0; k < 3; k++) t[k] = box[t[k + 1]];
            t[3] = box[first];
            t[0] ^= constant;
            constant = twice(constant);
        }
        for (int k = 0; k < 4; k++) keys[i + k] = keys[i - 16 + k] ^ t[k];
    }
}

static void add_key(u8 *s, int round) {
    for (int i = 0; i < 16; i++) s[i] ^= keys[16 * round + i];
}

static void substitute(u8 *s, const u8 *table, int direction) {
    u8 t[16];
    for (int i = 0; i < 16; i++) t[i] = table[s[i]];
    for (int c = 0; c < 4; c++)
        for (int r = 0; r < 4; r++) s[4 * c + r] = t[4 * ((c + direction * r + 4) % 4) + r];
}

static void mix(u8 *s, const u8 *row) {
    for (int c = 0; c < 4; c++) {
        u8 t[4];
        for (int r = 0; r < 4; r++) {
            t[r] = 0;
            for (int k = 0; k < 4; k++) t[r] ^= times(s[4 * c + k], row[(k - r + 4) % 4]);
        }
        for (int r = 0; r < 4; r++) s[4 * c + r] = t[r];
    }
}

static void encrypt(u8 *s) {
    static const u8 row[] = {2, 3, 1, 1};
    add_key(s, 0);
    for (int round = 1; round <= 10; round++) {
        substitute(s, box, 1);
        if (round < 10) mix(s, row);
        add_key(s, round);
    }
}

static void decrypt(u8 *s) {
    static const u8 row[] = {14, 11, 13, 9};
    for (int round = 10; round; round--) {
        add_key(s, round);
        if (round < 10) mix(s, row);
        substitute(s, inverse, -1);
    }
    add_key(s, 0);
}

static void quarter(u32 *x, int a, int b, int c, int d) {
    x[a] += x[b], x[d] = left(x[d] ^ x[a], 16);
    x[c] += x[d], x[b] = left(x[b] ^ x[c], 12);
    x[a] += x[b], x[d] = left(x[d] ^ x[a], 8);
    x[c] += x[d], x[b] = left(x[b] ^ x[c], 7);
}

static void stream(u8 *data, int n, const u8 *key, u32 counter) {
    for (int at = 0; at < n; at += 64, counter++) {
        u32 x[16], y[16];
        for (int i = 0; i < 16; i++) x[i] = y[i] = i < 4 ? primes[i] : i < 12 ? little(key + 4 * (i - 4)) : counter + (u32)i;
        for (int i = 0; i < 10; i++) {
            for (int k = 0; k < 4; k++) quarter(x, k, k + 4, k + 8, k + 12);
            for (int k = 0; k < 4; k++) quarter(x, k, (k + 1) % 4 + 4, (k + 2) % 4 + 8, (k + 3) % 4 + 12);
        }
        for (int i = 0; i < 64 && at + i < n; i++) data[at + i] ^= (u8)((x[i / 4] + y[i / 4]) >> 8 * (i % 4));
    }
}

static int to_hex(const u8 *data, int n) {
    for (int i = 0; i < n; i++) {
        letters[2 * i] = (u8)"0123456789abcdef"[data[i] >> 4];
        letters[2 * i + 1] = (u8)"0123456789abcdef"[data[i] & 15];
    }
    return 2 * n;
}

static int from_hex(u8 *out, int n) {
    for (int i = 0; i < n; i++) {
        u8 c = letters[i], digit = c <= '9' ? c - '0' : c - 'a' + 10;
        if (i % 2) out[i / 2] |= digit;
        else out[i / 2] = (u8)(digit << 4);
    }
    return n / 2;
}

u64 run(u64 seed) {
    u64 state = seed | 1, sum = 0;
    u8 data[MOST], digest[32], key[32];
    constants();
    make_box();
    for (int round = 0; round < 3; round++) {
        int n = (int)(next(&state) % 200) + 16;
        for (int i = 0; i < n; i++) data[i] = (u8)next(&state);
        sha256(data, n, key);
        keyed(key, data, n, digest);
        sum = sum * 31 + little(digest) + siphash(data, n, sum);
        md5(data, n, digest);
        sum = sum * 31 + little(digest + 4);
        u8 block[16];
        expand(key);
        for (int i = 0; i < 16; i++) block[i] = data[i];
        encrypt(block);
        sum = sum * 31 + big(block) + big(block + 12);
        decrypt(block);
        for (int i = 0; i < 16; i++) sum += block[i] == data[i];
        stream(data, n, key, (u32)seed);
        sum = sum * 31 + (u64)from_hex(data, to_hex(data, n)) + data[n - 1];
        sum ^= siphash(data, n, seed);
    }
    return sum;
}
