
/* Place of a category's number among n in ascending order; n if it is not there. */
static size_t place_of(const double *known, size_t n, double code)
{
    size_t first = 0, stop = n;
    while (first < stop) {
        const size_t middle = first + (stop - first) / 2;
        if (known[middle] < code) first = middle + 1;
        else stop = middle;
    }
    return first < n && known[first] == code ? first : n;
}

#ifdef SPARSACT_STATIC
static
#endif
double ${name}_code(const char *text, size_t length);

static inline uint64_t rotated(uint64_t x, int bits) { return x >> bits | x << (64 - bits); }

/* The number of a category that is a text in UTF-8: 2**52 and the first 52 bits of its BLAKE2b digest (RFC 7693). */
double ${name}_code(const char *text, size_t length)
{
    static const uint64_t iv[8] = {
        0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
        0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u};
    static const uint8_t order[10][16] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
        {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
        {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
        {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
        {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
        {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
        {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
        {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
        {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
        {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};
    uint64_t h[8], v[16], words[16];
    size_t done = 0;
    for (size_t i = 0; i < 8; ++i) h[i] = iv[i];
    h[0] ^= 0x01010008u;
    do {
        const size_t here = length - done < 128 ? length - done : 128;
        for (size_t i = 0; i < 16; ++i) words[i] = 0;
        for (size_t i = 0; i < here; ++i) words[i / 8] |= (uint64_t)(unsigned char)text[done + i] << 8 * (i % 8);
        done += here;
        for (size_t i = 0; i < 8; ++i) {
            v[i] = h[i];
            v[8 + i] = iv[i];
        }
        v[12] ^= done;
        if (done == length) v[14] = ~v[14];
        for (size_t round = 0; round < 12; ++round)
            for (size_t i = 0; i < 8; ++i) { /* columns, then diagonals */
                const size_t turn = i / 4, column = i % 4;
                const uint8_t *next = order[round % 10] + 2 * i;
                uint64_t *a = v + column, *b = v + 4 + (column + turn) % 4, *c = v + 8 + (column + 2 * turn) % 4,
                         *d = v + 12 + (column + 3 * turn) % 4;
                *a += *b + words[next[0]];
                *d = rotated(*d ^ *a, 32);
                *c += *d;
                *b = rotated(*b ^ *c, 24);
                *a += *b + words[next[1]];
                *d = rotated(*d ^ *a, 16);
                *c += *d;
                *b = rotated(*b ^ *c, 63);
            }
        for (size_t i = 0; i < 8; ++i) h[i] ^= v[i] ^ v[8 + i];
    } while (done < length);
    return (double)((uint64_t)1 << 52 | h[0] >> 12);
}
