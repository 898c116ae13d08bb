/* Five ways to sort the same numbers; the sums of all agree only if every one of them sorts. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { N = 400 };

static u32 data[N], work[N], spare[N];

static void insertion(u32 *a, int n) {
    for (int i = 1; i < n; i++) {
        u32 x = a[i];
        int j = i;
        for (; j > 0 && a[j - 1] > x; j--) a[j] = a[j - 1];
        a[j] = x;
    }
}

static void swap(u32 *a, u32 *b) {
    u32 t = *a;
    *a = *b;
    *b = t;
}

static void quick(u32 *a, int low, int high) {
    while (high - low > 12) {
        u32 pivot = a[low + (high - low) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (a[i] < pivot) i++;
            while (a[j] > pivot) j--;
            if (i <= j) swap(&a[i++], &a[j--]);
        }
        if (j - low < high - i) {
            quick(a, low, j);
            low = i;
        } else {
            quick(a, i, high);
            high = j;
        }
    }
    insertion(a + low, high - low + 1);
}

static void sift(u32 *a, int root, int n) {
    for (int child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && a[child] < a[child + 1]) child++;
        if (a[root] >= a[child]) return;
        swap(&a[root], &a[child]);
    }
}

static void heap(u32 *a, int n) {
    for (int i = n / 2; i-- > 0;) sift(a, i, n);
    for (int i = n; i-- > 1;) {
        swap(&a[0], &a[i]);
        sift(a, 0, i);
    }
}

static void merge(u32 *a, u32 *b, int n) {
    for (int width = 1; width < n; width *= 2) {
        for (int left = 0; left < n; left += 2 * width) {
            int middle = left + width < n ? left + width : n, right = left + 2 * width < n ? left + 2 * width : n;
            int i = left, j = middle;
            for (int k = left; k < right; k++) b[k] = i < middle && (j >= right || a[i] <= a[j]) ? a[i++] : a[j++];
        }
        for (int k = 0; k < n; k++) a[k] = b[k];
    }
}

static void radix(u32 *a, u32 *b, int n) {
    for (int shift = 0; shift < 32; shift += 8) {
        int count[257] = {0};
        for (int i = 0; i < n; i++) count[(a[i] >> shift & 255) + 1]++;
        for (int i = 0; i < 256; i++) count[i + 1] += count[i];
        for (int i = 0; i < n; i++) b[count[a[i] >> shift & 255]++] = a[i];
        for (int i = 0; i < n; i++) a[i] = b[i];
    }
}

u64 run(u64 seed) {
    u64 sum = 0, state = seed;
    for (int i = 0; i < N; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        data[i] = (u32)(state >> 33) % 5000;
    }
    for (int way = 0; way < 5; way++) {
        for (int i = 0; i < N; i++) work[i] = data[i];
        if (way == 0) insertion(work, N / 2);
        if (way == 1) quick(work, 0, N - 1);
        if (way == 2) heap(work, N);
        if (way == 3) merge(work, spare, N);
        if (way == 4) radix(work, spare, N);
        for (int i = 0; i < N; i++) sum = sum * 1099511628211ull + work[i];
    }
    return sum;
}
