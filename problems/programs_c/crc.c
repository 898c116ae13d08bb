/* Checksums: CRC-32 bit by bit, by table and four bytes at a time, CRC-16, Adler-32, Fletcher, the Luhn digit. */
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

enum { LENGTH = 700 };

static u8 data[LENGTH];
static u32 table[4][256];

static u32 step(u32 crc) {
    for (int i = 0; i < 8; i++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    return crc;
}

static void tables(void) {
    for (u32 i = 0; i < 256; i++) table[0][i] = step(i);
    for (int k = 1; k < 4; k++)
        for (u32 i = 0; i < 256; i++) table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
}

static u32 crc_bits(const u8 *p, int n) {
    u32 crc = ~0u;
    while (n--) crc = step(crc ^ *p++);
    return ~crc;
}

static u32 crc_table(const u8 *p, int n) {
    u32 crc = ~0u;
    while (n--) crc = crc >> 8 ^ table[0][(crc ^ *p++) & 255];
    return ~crc;
}

static u32 crc_words(const u8 *p, int n) {
    u32 crc = ~0u;
    for (; n >= 4; n -= 4, p += 4) {
        crc ^= (u32)p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
        crc = table[3][crc & 255] ^ table[2][crc >> 8 & 255] ^ table[1][crc >> 16 & 255] ^ table[0][crc >> 24];
    }
    while (n--) crc = crc >> 8 ^ table[0][(crc ^ *p++) & 255];
    return ~crc;
}

static u16 crc16(const u8 *p, int n) {
    u16 crc = 0xffff;
    while (n--) {
        crc ^= (u16)(*p++ << 8);
        for (int i = 0; i < 8; i++) crc = (u16)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc;
}

static u32 adler(const u8 *p, int n) {
    u32 a = 1, b = 0;
    while (n) {
        int part = n > 380 ? 380 : n;
        n -= part;
        while (part--) b += a += *p++;
        a %= 65521, b %= 65521;
    }
    return b << 16 | a;
}

static u32 fletcher(const u8 *p, int n) {
    u32 a = 0, b = 0;
    for (int i = 0; i + 1 < n; i += 2) {
        a = (a + (p[i] | (u32)p[i + 1] << 8)) % 65535;
        b = (b + a) % 65535;
    }
    return b << 16 | a;
}

static u32 luhn(const u8 *p, int n) {
    u32 sum = 0;
    for (int i = 0; i < n; i++) {
        u32 digit = p[i] % 10;
        if (i % 2) digit = digit > 4 ? 2 * digit - 9 : 2 * digit;
        sum += digit;
    }
    return (10 - sum % 10) % 10;
}

u64 run(u64 seed) {
    u64 state = seed, sum = 0;
    for (int i = 0; i < LENGTH; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        data[i] = (u8)(state >> 50);
    }
    tables();
    for (int n = LENGTH - 3; n <= LENGTH; n++) {
        u32 crc = crc_table(data, n);
        sum = sum * 1000003 + crc + (crc == crc_words(data, n)) * 3 + (crc == crc_bits(data, n)) * 5;
        sum = sum * 1000003 + ((u64)adler(data, n) << 16 ^ fletcher(data, n) ^ crc16(data, n)) + luhn(data, n);
    }
    return sum;
}
