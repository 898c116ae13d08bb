/* A Fourier transform in fixed point, its inverse, a convolution by it, and a sine table made by rotation. */
typedef unsigned long long u64;
typedef long long i64;
typedef int i32;

enum { N = 64, LOG = 6, ONE = 1 << 14 };

static i32 re[N], im[N], other_re[N], other_im[N], sine[N], cosine[N], signal[N];

static i32 times(i32 a, i32 b) { return (i32)(((i64)a * b + ONE / 2) >> 14); }

static void rotations(void) {
    i64 c = (i64)ONE << 16, s = 0;
    for (int i = 0; i < N; i++) {
        cosine[i] = (i32)(c >> 16);
        sine[i] = (i32)(s >> 16);
        i64 next = (c * 65220 - s * 6424) >> 16;
        s = (s * 65220 + c * 6424) >> 16;
        c = next;
    }
}

static int reversed(int i) {
    int r = 0;
    for (int bit = 0; bit < LOG; bit++) r = r << 1 | (i >> bit & 1);
    return r;
}

static void reorder(i32 *x) {
    for (int i = 0; i < N; i++) {
        int j = reversed(i);
        if (i < j) {
            i32 t = x[i];
            x[i] = x[j];
            x[j] = t;
        }
    }
}

static void transform(i32 *x, i32 *y, int inverse) {
    reorder(x);
    reorder(y);
    for (int half = 1; half < N; half *= 2)
        for (int start = 0; start < N; start += 2 * half)
            for (int k = 0; k < half; k++) {
                int angle = k * (N / 2 / half), i = start + k, j = i + half;
                i32 c = cosine[angle], s = inverse ? sine[angle] : -sine[angle];
                i32 a = times(x[j], c) - times(y[j], s), b = times(x[j], s) + times(y[j], c);
                x[j] = x[i] - a;
                y[j] = y[i] - b;
                x[i] += a;
                y[i] += b;
                if (inverse) x[i] /= 2, y[i] /= 2, x[j] /= 2, y[j] /= 2;
            }
}

static void convolve(void) {
    for (int i = 0; i < N; i++) {
        i32 a = re[i] >> 4, b = im[i] >> 4, c = other_re[i] >> 4, d = other_im[i] >> 4;
        re[i] = times(a, c) - times(b, d);
        im[i] = times(a, d) + times(b, c);
    }
}

static i32 loudest(void) {
    i32 best = 0;
    i64 most = -1;
    for (int i = 0; i < N / 2; i++) {
        i64 power = (i64)re[i] * re[i] + (i64)im[i] * im[i];
        if (power > most) most = power, best = i;
    }
    return best;
}

u64 run(u64 seed) {
    u64 state = seed, sum = 0;
    rotations();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            signal[i] = (i32)(state >> 52) - 2048 + cosine[i * (round + 3) % N] / 4;
            re[i] = signal[i];
            im[i] = other_im[i] = 0;
            other_re[i] = i < 4 ? 1000 : 0;
        }
        transform(re, im, 0);
        sum = sum * 31 + (u64)loudest();
        transform(other_re, other_im, 0);
        convolve();
        transform(re, im, 1);
        for (int i = 0; i < N; i++) sum = sum * 31 + (u64)(i64)re[i] * 7 + (u64)(i64)im[i];
    }
    return sum;
}
