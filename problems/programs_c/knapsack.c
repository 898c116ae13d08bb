/* Dynamic programming: a knapsack, coins, the longest increasing and the longest common subsequence. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { ITEMS = 24, ROOM = 300, N = 90 };

static u32 best[ROOM + 1], ways[ROOM + 1], weight[ITEMS], worth[ITEMS], a[N], b[N], tails[N], common[N + 1][N + 1];

static u32 knapsack(void) {
    for (int room = 0; room <= ROOM; room++) best[room] = 0;
    for (int i = 0; i < ITEMS; i++)
        for (u32 room = ROOM; room >= weight[i]; room--) {
            u32 with = best[room - weight[i]] + worth[i];
            if (with > best[room]) best[room] = with;
        }
    return best[ROOM];
}

static u32 coins(void) {
    static const u32 values[] = {1, 2, 5, 10, 20, 50, 100};
    for (int i = 0; i <= ROOM; i++) ways[i] = i == 0;
    for (int c = 0; c < 7; c++)
        for (u32 sum = values[c]; sum <= ROOM; sum++) ways[sum] += ways[sum - values[c]];
    return ways[ROOM];
}

static int increasing(void) {
    int n = 0;
    for (int i = 0; i < N; i++) {
        int low = 0, high = n;
        while (low < high) {
            int middle = (low + high) / 2;
            if (tails[middle] < a[i]) low = middle + 1;
            else high = middle;
        }
        tails[low] = a[i];
        if (low == n) n++;
    }
    return n;
}

static u32 longest_common(void) {
    for (int i = 0; i <= N; i++) common[i][0] = common[0][i] = 0;
    for (int i = 1; i <= N; i++)
        for (int j = 1; j <= N; j++) {
            u32 up = common[i - 1][j], left = common[i][j - 1];
            common[i][j] = a[i - 1] == b[j - 1] ? common[i - 1][j - 1] + 1 : up > left ? up : left;
        }
    return common[N][N];
}

static u64 chosen(void) {
    u64 sum = 0;
    for (int i = N, j = N; i && j;) {
        if (a[i - 1] == b[j - 1]) {
            sum = sum * 37 + a[i - 1];
            i--, j--;
        } else if (common[i - 1][j] >= common[i][j - 1]) {
            i--;
        } else {
            j--;
        }
    }
    return sum;
}

u64 run(u64 seed) {
    u64 state = seed, sum = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < ITEMS; i++) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            weight[i] = (u32)(state >> 40) % 60 + 1;
            worth[i] = (u32)(state >> 50) % 100;
        }
        for (int i = 0; i < N; i++) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            a[i] = (u32)(state >> 60);
            b[i] = (u32)(state >> 48) % 16;
        }
        sum = sum * 1000003 + knapsack() + coins();
        sum = sum * 1000003 + (u64)increasing() + longest_common();
        sum ^= chosen();
    }
    return sum;
}
