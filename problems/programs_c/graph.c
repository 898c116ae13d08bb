/* Shortest paths by Dijkstra and Floyd-Warshall, a spanning tree by Kruskal, components by union-find. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { NODES = 24, EDGES = 90, FAR = 1 << 28 };

typedef struct {
    int from, to, cost;
} Edge;

static Edge edges[EDGES];
static int first[NODES], link[2 * EDGES], target[2 * EDGES], price[2 * EDGES];
static int distance[NODES], done[NODES], between[NODES][NODES], owner[NODES];

static void adjacency(void) {
    for (int i = 0; i < NODES; i++) first[i] = -1;
    for (int e = 0; e < EDGES; e++)
        for (int side = 0; side < 2; side++) {
            int from = side ? edges[e].to : edges[e].from, slot = 2 * e + side;
            target[slot] = side ? edges[e].from : edges[e].to;
            price[slot] = edges[e].cost;
            link[slot] = first[from];
            first[from] = slot;
        }
}

static void dijkstra(int source) {
    for (int i = 0; i < NODES; i++) distance[i] = FAR, done[i] = 0;
    distance[source] = 0;
    for (int step = 0; step < NODES; step++) {
        int near = -1;
        for (int i = 0; i < NODES; i++)
            if (!done[i] && (near < 0 || distance[i] < distance[near])) near = i;
        done[near] = 1;
        for (int slot = first[near]; slot >= 0; slot = link[slot])
            if (distance[near] + price[slot] < distance[target[slot]])
                distance[target[slot]] = distance[near] + price[slot];
    }
}

static void floyd(void) {
    for (int i = 0; i < NODES; i++)
        for (int j = 0; j < NODES; j++) between[i][j] = i == j ? 0 : FAR;
    for (int e = 0; e < EDGES; e++) {
        int a = edges[e].from, b = edges[e].to;
        if (edges[e].cost < between[a][b]) between[a][b] = between[b][a] = edges[e].cost;
    }
    for (int k = 0; k < NODES; k++)
        for (int i = 0; i < NODES; i++)
            for (int j = 0; j < NODES; j++)
                if (between[i][k] + between[k][j] < between[i][j]) between[i][j] = between[i][k] + between[k][j];
}

static int find(int i) {
    while (owner[i] != i) i = owner[i] = owner[owner[i]];
    return i;
}

static int kruskal(void) {
    int total = 0;
    for (int i = 0; i < NODES; i++) owner[i] = i;
    for (int i = 1; i < EDGES; i++) {
        Edge edge = edges[i];
        int j = i;
        for (; j > 0 && edges[j - 1].cost > edge.cost; j--) edges[j] = edges[j - 1];
        edges[j] = edge;
    }
    for (int e = 0; e < EDGES; e++) {
        int a = find(edges[e].from), b = find(edges[e].to);
        if (a != b) {
            owner[a] = b;
            total += edges[e].cost;
        }
    }
    return total;
}

u64 run(u64 seed) {
    u64 state = seed, sum = 0;
    for (int e = 0; e < EDGES; e++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        edges[e].from = (int)((state >> 33) % NODES);
        edges[e].to = (int)((state >> 40) % NODES);
        edges[e].cost = (int)((state >> 47) % 1000) + 1;
    }
    adjacency();
    floyd();
    for (int source = 0; source < NODES; source++) {
        dijkstra(source);
        for (int i = 0; i < NODES; i++) sum = sum * 31 + (u64)distance[i] + (u64)(distance[i] != between[source][i]);
    }
    return sum * 31 + (u64)kruskal();
}
