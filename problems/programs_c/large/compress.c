/* A compressor: Lempel and Ziv's matches in hash chains, then canonical Huffman codes; move to front and runs beside. */
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

enum { SIZE = 3000, WINDOW = 1024, HEADS = 256, SYMBOLS = 288, LONGEST = 15, LEAST = 3, MOST = 34, ROOM = 8192 };

static u8 input[SIZE], packed[ROOM], output[SIZE + MOST], order[256];
static int heads[HEADS], chain[SIZE];
static u16 tokens[SIZE * 2];
static int counts[SYMBOLS], lengths[SYMBOLS], codes[SYMBOLS], parents[SYMBOLS * 2], weights[SYMBOLS * 2];
static int heap[SYMBOLS], heaped;
static u32 bits, held;
static int place;

static u64 next(u64 *state) {
    u64 x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static void fill(u64 *state) {
    for (int i = 0; i < SIZE;) {
        u64 r = next(state);
        if (i > 40 && r % 4) {
            int from = (int)((r >> 8) % (u64)(i - 30)), n = (int)((r >> 32) % 25);
            while (n-- && i < SIZE) input[i++] = input[from++];
        } else {
            input[i++] = (u8)("etaoin shrdlu.\n"[(r >> 8) % 15]);
        }
    }
}

static u32 crc(const u8 *data, int n) {
    u32 c = 0xffffffffu;
    while (n--) {
        c ^= *data++;
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    }
    return ~c;
}

static u32 adler(const u8 *data, int n) {
    u32 a = 1, b = 0;
    for (int i = 0; i < n; i++) a = (a + data[i]) % 65521, b = (b + a) % 65521;
    return b << 16 | a;
}

static u32 hash(const u8 *p) { return (p[0] * 33u * 33u + p[1] * 33u + p[2]) % HEADS; }

static int match(int a, int b) {
    int n = 0;
    while (n < MOST && b + n < SIZE && input[a + n] == input[b + n]) n++;
    return n;
}

static void enter(int i) {
    if (i + LEAST > SIZE) return;
    u32 h = hash(input + i);
    chain[i] = heads[h];
    heads[h] = i;
}

static int longest(int i, int *distance) {
    int best = 0, tries = 16;
    if (i + LEAST > SIZE) return 0;
    for (int j = heads[hash(input + i)]; j >= 0 && i - j < WINDOW && tries--; j = chain[j]) {
        int n = match(j, i);
        if (n > best) best = n, *distance = i - j;
    }
    return best >= LEAST ? best : 0;
}

static int tokenize(void) {
    int n = 0;
    for (int i = 0; i < HEADS; i++) heads[i] = -1;
    for (int i = 0; i < SIZE;) {
        int distance = 0, length = longest(i, &distance), later = 0;
        if (length) {
            enter(i);
            if (longest(i + 1, &later) > length) {
                tokens[n++] = input[i++];
                continue;
            }
            tokens[n++] = (u16)(256 + length - LEAST);
            tokens[n++] = (u16)distance;
            for (int k = 1; k < length; k++) enter(i + k);
            i += length;
        } else {
            enter(i);
            tokens[n++] = input[i++];
        }
    }
    return n;
}

static void count(int n) {
    for (int i = 0; i < SYMBOLS; i++) counts[i] = 0;
    for (int i = 0; i < n; i++) {
        counts[tokens[i]]++;
        if (tokens[i] >= 256) i++;
    }
}

static void sift(int i) {
    int moved = heap[i];
    for (int child = 2 * i + 1; child < heaped; child = 2 * i + 1) {
        if (child + 1 < heaped && weights[heap[child + 1]] < weights[heap[child]]) child++;
        if (weights[moved] <= weights[heap[child]]) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moved;
}

static int pop(void) {
    int top = heap[0];
    heap[0] = heap[--heaped];
    sift(0);
    return top;
}

static int depths(void) {
    int made = SYMBOLS, deepest = 0;
    heaped = 0;
    for (int i = 0; i < SYMBOLS; i++) {
        weights[i] = counts[i];
        lengths[i] = 0;
        if (counts[i]) heap[heaped++] = i;
    }
    for (int i = heaped / 2; i-- > 0;) sift(i);
    while (heaped > 1) {
        int a = pop(), b = pop();
        weights[made] = weights[a] + weights[b];
        parents[a] = parents[b] = made;
        heap[heaped++] = made++;
        for (int i = heaped - 1; i && weights[heap[i]] < weights[heap[(i - 1) / 2]]; i = (i - 1) / 2) {
            int swapped = heap[i];
            heap[i] = heap[(i - 1) / 2];
            heap[(i - 1) / 2] = swapped;
        }
    }
    for (int i = 0; i < SYMBOLS; i++) {
        for (int j = i; counts[i] && j != made - 1; j = parents[j]) lengths[i]++;
        if (lengths[i] > deepest) deepest = lengths[i];
    }
    return deepest;
}

static void assign(void) {
    int code = 0;
    for (int length = 1; length <= LONGEST; length++, code <<= 1)
        for (int i = 0; i < SYMBOLS; i++)
            if (lengths[i] == length) codes[i] = code++;
}

static void make_codes(void) {
    while (depths() > LONGEST)
        for (int i = 0; i < SYMBOLS; i++)
            if (counts[i]) counts[i] = counts[i] / 2 + 1;
    assign();
}

static void write(int value, int n) {
    while (n--) {
        bits = bits << 1 | (u32)(value >> n & 1);
        if (++held == 8 && place < ROOM) packed[place++] = (u8)bits, held = 0;
    }
}

static int read(int n) {
    int value = 0;
    while (n--) {
        if (!held) bits = packed[place++], held = 8;
        value = value << 1 | (int)(bits >> --held & 1);
    }
    return value;
}

static void encode(int n) {
    place = 0, held = 0;
    for (int i = 0; i < n; i++) {
        write(codes[tokens[i]], lengths[tokens[i]]);
        if (tokens[i] >= 256) write(tokens[++i], 10);
    }
    write(0, 7);
}

static int symbol(void) {
    int code = 0;
    for (int length = 1; length <= LONGEST; length++) {
        code = code << 1 | read(1);
        for (int i = 0; i < SYMBOLS; i++)
            if (lengths[i] == length && codes[i] == code) return i;
    }
    return -1;
}

static int decode(void) {
    int n = 0;
    place = 0, held = 0;
    while (n < SIZE) {
        int s = symbol();
        if (s < 0) return -1;
        if (s < 256) {
            output[n++] = (u8)s;
            continue;
        }
        int distance = read(10);
        for (int k = s - 256 + LEAST; k && n < SIZE; k--, n++) output[n] = output[n - distance];
    }
    return n;
}

static void reset_order(void) {
    for (int i = 0; i < 256; i++) order[i] = (u8)i;
}

static int to_front(u8 c) {
    int i = 0;
    while (order[i] != c) i++;
    for (int j = i; j > 0; j--) order[j] = order[j - 1];
    order[0] = c;
    return i;
}

static int runs(const u8 *data, int n) {
    int made = 0, zeros = 0;
    reset_order();
    for (int i = 0; i < n; i++) {
        int rank = to_front(data[i]);
        if (!rank && zeros < 255) {
            zeros++;
            continue;
        }
        if (zeros) packed[made++] = 0, packed[made++] = (u8)zeros;
        zeros = 0;
        packed[made++] = (u8)rank;
    }
    return made;
}

u64 run(u64 seed) {
    u64 state = seed | 1, sum = 0;
    for (int round = 0; round < 2; round++) {
        fill(&state);
        int n = tokenize();
        count(n);
        make_codes();
        encode(n);
        int bytes = place, back = decode();
        int good = back == SIZE && crc(input, SIZE) == crc(output, SIZE);
        sum = sum * 1000003 + (u64)bytes * 4 + (u64)good;
        sum = sum * 31 + adler(packed, bytes);
        sum = sum * 31 + crc(packed, runs(input, 600));
    }
    return sum;
}
