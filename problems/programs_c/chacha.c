/* Ciphers: ChaCha20 and its Poly1305-like sum, SipHash, RC4, XTEA there and back. */
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

enum { LENGTH = 256 };

static u8 message[LENGTH], sealed[LENGTH], box[256];

static u32 rotate(u32 x, int n) { return x << n | x >> (32 - n); }

static void quarter(u32 *s, int a, int b, int c, int d) {
    s[a] += s[b], s[d] = rotate(s[d] ^ s[a], 16);
    s[c] += s[d], s[b] = rotate(s[b] ^ s[c], 12);
    s[a] += s[b], s[d] = rotate(s[d] ^ s[a], 8);
    s[c] += s[d], s[b] = rotate(s[b] ^ s[c], 7);
}

static void block(const u32 *key, u32 counter, u8 *out) {
    u32 state[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, work[16];
    for (int i = 0; i < 8; i++) state[4 + i] = key[i];
    state[12] = counter;
    for (int i = 0; i < 3; i++) state[13 + i] = key[i] ^ key[7 - i];
    for (int i = 0; i < 16; i++) work[i] = state[i];
    for (int i = 0; i < 10; i++) {
        for (int j = 0; j < 4; j++) quarter(work, j, 4 + j, 8 + j, 12 + j);
        for (int j = 0; j < 4; j++) quarter(work, j, 4 + (j + 1) % 4, 8 + (j + 2) % 4, 12 + (j + 3) % 4);
    }
    for (int i = 0; i < 64; i++) out[i] = (u8)((work[i / 4] + state[i / 4]) >> (i % 4 * 8));
}

static void chacha(const u32 *key, const u8 *in, u8 *out) {
    u8 stream[64];
    for (int i = 0; i < LENGTH; i++) {
        if (i % 64 == 0) block(key, (u32)i / 64, stream);
        out[i] = in[i] ^ stream[i % 64];
    }
}

static u64 turn(u64 x, int n) { return x << n | x >> (64 - n); }

static void sip_round(u64 *v) {
    v[0] += v[1], v[1] = turn(v[1], 13) ^ v[0], v[0] = turn(v[0], 32);
    v[2] += v[3], v[3] = turn(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = turn(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = turn(v[1], 17) ^ v[2], v[2] = turn(v[2], 32);
}

static u64 siphash(u64 a, u64 b, const u8 *p, int n) {
    u64 v[4] = {a ^ 0x736f6d6570736575ull, b ^ 0x646f72616e646f6dull, a ^ 0x6c7967656e657261ull, b ^ 0x7465646279746573ull};
    for (int at = 0; at < n; at += 8) {
        u64 word = 0;
        for (int i = 0; i < 8 && at + i < n; i++) word |= (u64)p[at + i] << (8 * i);
        v[3] ^= word;
        for (int i = 0; i < 2; i++) sip_round(v);
        v[0] ^= word;
    }
    v[2] ^= 255;
    for (int i = 0; i < 4; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static void rc4(const u32 *key, u8 *data) {
    for (int i = 0; i < 256; i++) box[i] = (u8)i;
    for (int i = 0, j = 0; i < 256; i++) {
        j = (j + box[i] + (u8)(key[i % 8] >> (i % 4 * 8))) & 255;
        u8 t = box[i];
        box[i] = box[j], box[j] = t;
    }
    for (int n = 0, i = 0, j = 0; n < LENGTH; n++) {
        i = (i + 1) & 255, j = (j + box[i]) & 255;
        u8 t = box[i];
        box[i] = box[j], box[j] = t;
        data[n] ^= box[(box[i] + box[j]) & 255];
    }
}

static void xtea(u32 *v, const u32 *key, int back) {
    u32 a = v[0], b = v[1], sum = back ? 0x9e3779b9u * 32 : 0;
    for (int i = 0; i < 32; i++) {
        if (back) {
            b -= ((a << 4 ^ a >> 5) + a) ^ (sum + key[sum >> 11 & 3]);
            sum -= 0x9e3779b9u;
            a -= ((b << 4 ^ b >> 5) + b) ^ (sum + key[sum & 3]);
        } else {
            a += ((b << 4 ^ b >> 5) + b) ^ (sum + key[sum & 3]);
            sum += 0x9e3779b9u;
            b += ((a << 4 ^ a >> 5) + a) ^ (sum + key[sum >> 11 & 3]);
        }
    }
    v[0] = a, v[1] = b;
}

u64 run(u64 seed) {
    u32 key[8];
    u64 state = seed, sum = 0;
    for (int i = 0; i < 8; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        key[i] = (u32)(state >> 32);
    }
    for (int i = 0; i < LENGTH; i++) message[i] = (u8)(i * 7 + (int)(seed % 251));
    chacha(key, message, sealed);
    sum = siphash(seed, key[0], sealed, LENGTH - 3);
    chacha(key, sealed, sealed);
    for (int i = 0; i < LENGTH; i++) sum += (u64)(sealed[i] != message[i]) * 1000;
    rc4(key, sealed);
    for (int i = 0; i < LENGTH; i++) sum = sum * 31 + sealed[i];
    u32 pair[2] = {(u32)seed, (u32)(seed >> 32)};
    xtea(pair, key, 0);
    sum ^= (u64)pair[0] << 32 | pair[1];
    xtea(pair, key, 1);
    return sum * 31 + (pair[0] == (u32)seed);
}
