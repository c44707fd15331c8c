// Vectors of bytes and of 32-bit sums, as int8_products.hpp uses them. Included before it, once for each way.
namespace sparsact::SPARSACT_ISA {
namespace {
namespace INT8_WAY {

#if defined(SPARSACT_ISA_avx512)
using Lanes = __m512i;
INT8_TARGET SPARSACT_INLINE Lanes bytes_at(const void* from) { return _mm512_loadu_si512(from); }
INT8_TARGET SPARSACT_INLINE void put(void* to, Lanes v) { _mm512_storeu_si512(to, v); }
INT8_TARGET SPARSACT_INLINE Lanes repeated(std::uint32_t four) {
    return _mm512_set1_epi32(static_cast<int>(four));
}
// Each lane of 32 bits plus the four products of its bytes.
INT8_TARGET SPARSACT_INLINE Lanes with_products(Lanes sums, Lanes x, Lanes w) {
#ifdef INT8_VNNI
    return _mm512_dpbusd_epi32(sums, x, w);
#else
    return _mm512_add_epi32(sums, _mm512_madd_epi16(_mm512_maddubs_epi16(x, w), _mm512_set1_epi16(1)));
#endif
}
INT8_TARGET SPARSACT_INLINE Lanes bytes_of(char one) { return _mm512_set1_epi8(one); }
INT8_TARGET SPARSACT_INLINE Lanes both_of(Lanes a, Lanes b) { return _mm512_and_si512(a, b); }
INT8_TARGET SPARSACT_INLINE Lanes shifted_by_4(Lanes v) { return _mm512_srli_epi16(v, 4); }
// The multipliers of as many outputs as there are lanes, as `with_scaled` reads them.
INT8_TARGET SPARSACT_INLINE Lanes multipliers_at(const std::int8_t* from) {
    const Lanes wide =
        _mm512_maskz_cvtepi8_epi32(0xFFFF, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#ifdef INT8_VNNI
    return _mm512_maskz_mov_epi16(0x55555555, wide);
#else
    return _mm512_mask_blend_epi16(0xAAAAAAAA, wide, _mm512_maskz_slli_epi32(0xFFFF, wide, 16));
#endif
}
// Sums of a group, in 32 bits or twice in 16, plus four products of its int4 weights.
INT8_TARGET SPARSACT_INLINE Lanes with_nibbles(Lanes sums, Lanes w, Lanes x) {
#ifdef INT8_VNNI
    return _mm512_dpbusd_epi32(sums, w, x);
#else
    return _mm512_add_epi16(sums, _mm512_maddubs_epi16(w, x));
#endif
}
INT8_TARGET SPARSACT_INLINE Lanes with_scaled(Lanes totals, Lanes sums, Lanes by) {
#ifdef INT8_VNNI
    return _mm512_dpwssd_epi32(totals, sums, by);
#else
    return _mm512_add_epi32(totals, _mm512_madd_epi16(sums, by));
#endif
}
// The sum of the lanes of 128 bits.
INT8_TARGET SPARSACT_INLINE __m128i folded(Lanes v) {
    const __m256i half = _mm256_add_epi32(__builtin_shufflevector(v, v, 0, 1, 2, 3),
                                          __builtin_shufflevector(v, v, 4, 5, 6, 7));
    return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}
#define INT8_UNPACK(half, bits, x, y) _mm512_unpack##half##_epi##bits(x, y)
// Four vectors whose lanes of 128 bits are the rows of a matrix, transposed.
INT8_TARGET SPARSACT_INLINE void transpose(Lanes (&v)[4]) {
    const Lanes a = __builtin_shufflevector(v[0], v[1], 0, 1, 2, 3, 8, 9, 10, 11);
    const Lanes b = __builtin_shufflevector(v[2], v[3], 0, 1, 2, 3, 8, 9, 10, 11);
    const Lanes c = __builtin_shufflevector(v[0], v[1], 4, 5, 6, 7, 12, 13, 14, 15);
    const Lanes d = __builtin_shufflevector(v[2], v[3], 4, 5, 6, 7, 12, 13, 14, 15);
    v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13);
    v[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15);
    v[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5, 8, 9, 12, 13);
    v[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7, 10, 11, 14, 15);
}
#elif defined(SPARSACT_ISA_avx2)
using Lanes = __m256i;
INT8_TARGET SPARSACT_INLINE Lanes bytes_at(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
INT8_TARGET SPARSACT_INLINE void put(void* to, Lanes v) { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }
INT8_TARGET SPARSACT_INLINE Lanes repeated(std::uint32_t four) {
    return _mm256_set1_epi32(static_cast<int>(four));
}
INT8_TARGET SPARSACT_INLINE Lanes with_products(Lanes sums, Lanes x, Lanes w) {
#ifdef INT8_VNNI
    return _mm256_dpbusd_avx_epi32(sums, x, w);
#else
    return _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_maddubs_epi16(x, w), _mm256_set1_epi16(1)));
#endif
}
INT8_TARGET SPARSACT_INLINE Lanes bytes_of(char one) { return _mm256_set1_epi8(one); }
INT8_TARGET SPARSACT_INLINE Lanes both_of(Lanes a, Lanes b) { return _mm256_and_si256(a, b); }
INT8_TARGET SPARSACT_INLINE Lanes shifted_by_4(Lanes v) { return _mm256_srli_epi16(v, 4); }
INT8_TARGET SPARSACT_INLINE Lanes multipliers_at(const std::int8_t* from) {
    const Lanes wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
#ifdef INT8_VNNI
    return _mm256_blend_epi16(wide, _mm256_setzero_si256(), 0xAA);
#else
    return _mm256_blend_epi16(wide, _mm256_slli_epi32(wide, 16), 0xAA);
#endif
}
INT8_TARGET SPARSACT_INLINE Lanes with_nibbles(Lanes sums, Lanes w, Lanes x) {
#ifdef INT8_VNNI
    return _mm256_dpbusd_avx_epi32(sums, w, x);
#else
    return _mm256_add_epi16(sums, _mm256_maddubs_epi16(w, x));
#endif
}
INT8_TARGET SPARSACT_INLINE Lanes with_scaled(Lanes totals, Lanes sums, Lanes by) {
#ifdef INT8_VNNI
    return _mm256_dpwssd_avx_epi32(totals, sums, by);
#else
    return _mm256_add_epi32(totals, _mm256_madd_epi16(sums, by));
#endif
}
INT8_TARGET SPARSACT_INLINE __m128i folded(Lanes v) {
    return _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}
#define INT8_UNPACK(half, bits, x, y) _mm256_unpack##half##_epi##bits(x, y)
INT8_TARGET SPARSACT_INLINE void transpose(Lanes (&v)[4]) {
    const Lanes a = v[0], b = v[1], c = v[2], d = v[3];
    v[0] = _mm256_permute2x128_si256(a, b, 0x20), v[1] = _mm256_permute2x128_si256(c, d, 0x20);
    v[2] = _mm256_permute2x128_si256(a, b, 0x31), v[3] = _mm256_permute2x128_si256(c, d, 0x31);
}
#endif

}  // namespace INT8_WAY
}  // namespace
}  // namespace sparsact::SPARSACT_ISA
