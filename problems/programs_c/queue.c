/* A queue of events in a binary heap: customers arrive at counters, wait, are served and leave. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { LARGEST = 256, COUNTERS = 3, ARRIVALS = 220, ARRIVE = 0, LEAVE = 1 };

typedef struct {
    u32 time, kind, who;
} Event;

static Event heap[LARGEST];
static int size;
static u32 waiting[ARRIVALS], free_at[COUNTERS], came[ARRIVALS];
static int first, last;
static u64 state;

static u32 roll(u32 n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (u32)(state >> 33) % n;
}

static int before(const Event *a, const Event *b) {
    if (a->time != b->time) return a->time < b->time;
    return a->kind != b->kind ? a->kind > b->kind : a->who < b->who;
}

static void push(u32 time, u32 kind, u32 who) {
    Event event = {time, kind, who};
    int i = size++;
    while (i && before(&event, &heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = event;
}

static Event pop(void) {
    Event top = heap[0], moved = heap[--size];
    int i = 0;
    for (int child; (child = 2 * i + 1) < size; i = child) {
        if (child + 1 < size && before(&heap[child + 1], &heap[child])) child++;
        if (!before(&heap[child], &moved)) break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
    return top;
}

static void serve(u32 now) {
    for (u32 counter = 0; counter < COUNTERS && first < last; counter++)
        if (free_at[counter] <= now) {
            u32 who = waiting[first++], time = 5 + roll(30);
            free_at[counter] = now + time;
            push(now + time, LEAVE, who);
        }
}

u64 run(u64 seed) {
    u64 sum = 0, stayed = 0;
    u32 longest = 0, arrived = 0;
    state = seed;
    size = first = last = 0;
    for (int i = 0; i < COUNTERS; i++) free_at[i] = 0;
    push(roll(10), ARRIVE, arrived++);
    while (size) {
        Event event = pop();
        if (event.kind == ARRIVE) {
            came[event.who] = event.time;
            waiting[last++] = event.who;
            if (arrived < ARRIVALS) push(event.time + roll(13), ARRIVE, arrived++);
        } else {
            u32 stay = event.time - came[event.who];
            stayed += stay;
            if (stay > longest) longest = stay;
            sum = sum * 31 + event.who;
        }
        serve(event.time);
        sum = sum * 33 + event.time + (u64)(last - first);
    }
    return sum ^ stayed << 20 ^ longest;
}
