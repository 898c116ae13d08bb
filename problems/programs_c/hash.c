/* A hash table with open addressing: insertions, removals with backward shifts, look-ups. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { SLOTS = 512, KEYS = 340 };

static u64 keys[SLOTS];
static u32 values[SLOTS];

static u64 next(u64 *state) {
    u64 x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static u32 fnv(u64 key) {
    u32 h = 2166136261u;
    for (int i = 0; i < 8; i++) {
        h ^= (key >> (8 * i)) & 255;
        h *= 16777619u;
    }
    return h;
}

static u32 home(u64 key) { return (fnv(key) ^ (fnv(key) >> 15)) % SLOTS; }

static u32 find(u64 key) {
    u32 i = home(key);
    while (keys[i] && keys[i] != key) i = (i + 1) % SLOTS;
    return i;
}

static void put(u64 key, u32 value) {
    u32 i = find(key);
    if (keys[i] == key) {
        values[i] += value;
    } else {
        keys[i] = key;
        values[i] = value;
    }
}

static int drop(u64 key) {
    u32 i = find(key);
    if (!keys[i]) return 0;
    u32 hole = i;
    for (u32 j = (i + 1) % SLOTS; keys[j]; j = (j + 1) % SLOTS) {
        u32 distance = (j + SLOTS - home(keys[j])) % SLOTS;
        if (distance >= (j + SLOTS - hole) % SLOTS) {
            keys[hole] = keys[j];
            values[hole] = values[j];
            hole = j;
        }
    }
    keys[hole] = 0;
    return 1;
}

u64 run(u64 seed) {
    u64 state = seed | 1, sum = 0;
    for (int i = 0; i < SLOTS; i++) keys[i] = values[i] = 0;
    for (u32 i = 0; i < KEYS; i++) put(next(&state) % 700 + 1, i);
    for (int i = 0; i < 200; i++) sum += (u64)drop(next(&state) % 700 + 1) << (i % 20);
    for (u64 key = 1; key <= 700; key++) {
        u32 i = find(key);
        if (keys[i]) sum = sum * 31 + values[i] * (u32)key;
    }
    return sum;
}
