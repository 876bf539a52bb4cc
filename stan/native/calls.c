/* The functions of a Stan library at one point or many, for NumPy (by ctypes) and for XLA.
 *
 * An entry describes how the library is called: by pointers to BridgeStan's functions, so that one binary of this file
 * serves every library that has them. Rows of an array are points. A point that the program rejects has log density
 * -inf; its gradient and its values are NaN. A function returns the number of rejected points and the message of the
 * first one, or a negative code and its message where the program fails. The library frees the message.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "xla/ffi/api/c_api.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef struct {
  void* model;         /* NULL once it is closed */
  void* minus;         /* a model whose log density is subtracted, or NULL */
  int64_t size;        /* numbers of a point */
  int64_t values;      /* numbers that `constrain` gives */
  int64_t propto;      /* whether constant terms are dropped */
  int64_t jacobian;    /* whether the transforms' Jacobian is included */
  int64_t transformed; /* whether `constrain` gives transformed parameters */
  int64_t generated;   /* whether `constrain` gives generated quantities */
  int64_t lenient;     /* whether a negative code rejects the point, too */
  int (*density)(const void*, bool, bool, const double*, double*, char**);
  int (*gradient)(const void*, bool, bool, const double*, double*, double*, char**);
  int (*constrain)(const void*, bool, bool, const double*, double*, void*, char**);
  int (*unconstrain)(const void*, const double*, double*, char**);
  void* (*new_rng)(unsigned int, char**);
  void (*end_rng)(void*);
  void (*free_message)(char*);
} Entry;

/* The third root of the rounding of a double, as in the library's own Hessians. */
static const double STEP = 6.0554544523933429e-06;

static void fill(double* values, int64_t count, double with) {
  for (int64_t i = 0; i < count; i++) values[i] = with;
}

/* Whether a code rejects the point. A library whose negative codes mean rejections, too, also returns one where an
 * index is out of range, which is a mistake in the program. */
static bool rejects(const Entry* entry, int code, const char* message) {
  if (code > 0) return true;
  return code < 0 && entry->lenient && !(message && strstr(message, "out of range"));
}

/* Counts a rejected point; returns true where the program fails instead. Keeps the first message of a rejection, and
 * that of a failure in its place. */
static bool fails(const Entry* entry, int code, char* message, int64_t* rejected, char** first) {
  const bool rejection = rejects(entry, code, message);
  if (rejection) ++*rejected;
  if (message) {
    const bool kept = code && !(rejection && *first);
    char* unwanted = kept ? *first : message;
    if (kept) *first = message;
    if (unwanted) entry->free_message(unwanted);
  }
  return code && !rejection;
}

static int density_at(const Entry* entry, const double* point, double* value, char** message) {
  double subtracted = 0;
  int code = entry->density(entry->model, entry->propto, entry->jacobian, point, value, message);
  if (!code && entry->minus) {
    code = entry->density(entry->minus, entry->propto, entry->jacobian, point, &subtracted, message);
    *value -= subtracted;
  }
  return code;
}

/* `scratch` has room for a gradient where the entry subtracts one. */
static int gradient_at(const Entry* entry, const double* point, double* value, double* gradient, double* scratch,
                       char** message) {
  double subtracted = 0;
  int code = entry->gradient(entry->model, entry->propto, entry->jacobian, point, value, gradient, message);
  if (!code && entry->minus) {
    code = entry->gradient(entry->minus, entry->propto, entry->jacobian, point, &subtracted, scratch, message);
    *value -= subtracted;
    for (int64_t i = 0; i < entry->size; i++) gradient[i] -= scratch[i];
  }
  return code;
}

static double norm(const double* vector, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; i++) sum += vector[i] * vector[i];
  return sqrt(sum);
}

/* The Hessian times a direction: the central difference of gradients. `scratch` has room for three points. */
static int product_at(const Entry* entry, const double* centre, const double* along, double* product, double* scratch,
                      char** message) {
  const int64_t size = entry->size;
  double value, *point = scratch, *behind = scratch + size, *spare = scratch + 2 * size;
  const double length = norm(along, size);
  fill(product, size, 0);
  if (!(length > 0)) return 0;
  const double step = STEP * (1 + norm(centre, size)) / length;
  for (int64_t i = 0; i < size; i++) point[i] = centre[i] + step * along[i];
  int code = gradient_at(entry, point, &value, product, spare, message);
  if (code) return code;
  for (int64_t i = 0; i < size; i++) point[i] = centre[i] - step * along[i];
  code = gradient_at(entry, point, &value, behind, spare, message);
  for (int64_t i = 0; i < size; i++) product[i] = (product[i] - behind[i]) / (2 * step);
  return code;
}

/* A seed from a point's bits (FNV-1a), so that the same point has the same random numbers. */
static unsigned int seed_at(const double* point, int64_t size) {
  uint64_t hash = 14695981039346656037u;
  for (int64_t i = 0; i < size; i++) {
    uint64_t bits;
    memcpy(&bits, point + i, sizeof bits);
    hash = (hash ^ bits) * 1099511628211u;
    hash ^= hash >> 32;
  }
  return (unsigned int)(hash ^ (hash >> 32));
}

static int constrain_at(const Entry* entry, const double* point, double* values, void* rng, char** message) {
  void* own = NULL;
  if (!rng && entry->generated) {
    rng = own = entry->new_rng(seed_at(point, entry->size), message);
    if (!own) return -1;
  }
  const int code = entry->constrain(entry->model, entry->transformed, entry->generated, point, values, rng, message);
  if (own) entry->end_rng(own);
  return code;
}

EXPORT int64_t onebasin_densities(const Entry* entry, int64_t count, const double* points, double* values,
                                  char** first) {
  int64_t rejected = 0;
  for (int64_t i = 0; i < count; i++) {
    char* message = NULL;
    const int code = density_at(entry, points + i * entry->size, values + i, &message);
    if (fails(entry, code, message, &rejected, first)) return code;
    if (code) values[i] = -INFINITY;
  }
  return rejected;
}

EXPORT int64_t onebasin_gradients(const Entry* entry, int64_t count, const double* points, double* values,
                                  double* gradients, char** first) {
  const int64_t size = entry->size;
  double* scratch = entry->minus ? malloc((size + 1) * sizeof(double)) : NULL;
  int64_t rejected = 0;
  for (int64_t i = 0; i < count; i++) {
    char* message = NULL;
    double* gradient = gradients + i * size;
    const int code = gradient_at(entry, points + i * size, values + i, gradient, scratch, &message);
    if (fails(entry, code, message, &rejected, first)) {
      rejected = code;
      break;
    }
    if (code) {
      values[i] = -INFINITY;
      fill(gradient, size, NAN);
    }
  }
  free(scratch);
  return rejected;
}

EXPORT int64_t onebasin_products(const Entry* entry, int64_t count, const double* points, const double* directions,
                                 double* products, char** first) {
  const int64_t size = entry->size;
  double* scratch = malloc((3 * size + 1) * sizeof(double));
  int64_t rejected = 0;
  for (int64_t i = 0; i < count; i++) {
    char* message = NULL;
    double* product = products + i * size;
    const int code = product_at(entry, points + i * size, directions + i * size, product, scratch, &message);
    if (fails(entry, code, message, &rejected, first)) {
      rejected = code;
      break;
    }
    if (code) fill(product, size, NAN);
  }
  free(scratch);
  return rejected;
}

/* Without a random number generator, the seed of generated quantities follows from each point. */
EXPORT int64_t onebasin_constrain(const Entry* entry, int64_t count, const double* points, double* values, void* rng,
                                  char** first) {
  int64_t rejected = 0;
  for (int64_t i = 0; i < count; i++) {
    char* message = NULL;
    double* row = values + i * entry->values;
    const int code = constrain_at(entry, points + i * entry->size, row, rng, &message);
    if (fails(entry, code, message, &rejected, first)) return code;
    if (code) fill(row, entry->values, NAN);
  }
  return rejected;
}

EXPORT int64_t onebasin_unconstrain(const Entry* entry, int64_t count, const double* values, double* points,
                                    char** first) {
  int64_t rejected = 0;
  for (int64_t i = 0; i < count; i++) {
    char* message = NULL;
    double* point = points + i * entry->size;
    const int code = entry->unconstrain(entry->model, values + i * entry->values, point, &message);
    if (fails(entry, code, message, &rejected, first)) return code;
    if (code) fill(point, entry->size, NAN);
  }
  return rejected;
}

/* XLA: custom calls on a processor, without Python and its lock.
 *
 * The address of an entry is the only attribute of a call. Its memory is never freed, so that a compiled program that
 * outlives its model finds an entry without a model.
 */

EXPORT Entry* onebasin_keep(const Entry* like) {
  Entry* entry = malloc(sizeof(Entry));
  if (entry) *entry = *like;
  return entry;
}

EXPORT void onebasin_close(Entry* entry) { entry->model = NULL; }

/* The version of XLA's interface to claim. XLA wants its own; Python reads it from the installed header, and compares
 * the major version, which changes with the layout of what XLA passes. */
static int claimed_major = XLA_FFI_API_MAJOR, claimed_minor = XLA_FFI_API_MINOR;

EXPORT int onebasin_xla_major(void) { return XLA_FFI_API_MAJOR; }

EXPORT void onebasin_claim_xla(int major, int minor) {
  claimed_major = major;
  claimed_minor = minor;
}

static XLA_FFI_Error* fail(XLA_FFI_CallFrame* frame, const char* message) {
  XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL, message,
                                    XLA_FFI_Error_Code_FAILED_PRECONDITION};
  return frame->api->XLA_FFI_Error_Create(&args);
}

/* Whether XLA only asks for the version of the interface; answered here. */
static bool answered(XLA_FFI_CallFrame* frame) {
  XLA_FFI_Metadata_Extension* asked = (XLA_FFI_Metadata_Extension*)frame->extension_start;
  if (!asked || asked->extension_base.type != XLA_FFI_Extension_Metadata) return false;
  XLA_FFI_Metadata* said = asked->metadata;
  said->api_version.major_version = claimed_major;
  said->api_version.minor_version = claimed_minor;
  said->traits = 0;
  return true;
}

static const Entry* entry_of(XLA_FFI_CallFrame* frame) {
  XLA_FFI_Scalar* only = (XLA_FFI_Scalar*)frame->attrs.attrs[0];
  return (const Entry*)(intptr_t)(*(int64_t*)only->value);
}

static double* argument(XLA_FFI_CallFrame* frame, int place) {
  return (double*)((XLA_FFI_Buffer*)frame->args.args[place])->data;
}

static double* result(XLA_FFI_CallFrame* frame, int place) {
  return (double*)((XLA_FFI_Buffer*)frame->rets.rets[place])->data;
}

/* Rows of the first argument: the last axis is a point. */
static int64_t count_of(XLA_FFI_CallFrame* frame) {
  XLA_FFI_Buffer* buffer = (XLA_FFI_Buffer*)frame->args.args[0];
  int64_t count = 1;
  for (int64_t axis = 0; axis + 1 < buffer->rank; axis++) count *= buffer->dims[axis];
  return count;
}

/* A handler of XLA's that evaluates `call` at `count` rows. */
#define HANDLER(name, call)                                                                 \
  EXPORT XLA_FFI_Error* name(XLA_FFI_CallFrame* frame) {                                    \
    if (answered(frame)) return NULL;                                                       \
    const Entry* entry = entry_of(frame);                                                   \
    if (!entry->model) return fail(frame, "the Stan model of this program is closed");      \
    const int64_t count = count_of(frame);                                                  \
    char* first = NULL;                                                                     \
    const int64_t code = call;                                                              \
    XLA_FFI_Error* error = NULL;                                                            \
    if (code < 0) error = fail(frame, first ? first : "the Stan model gave no reason");     \
    if (first) entry->free_message(first);                                                  \
    return error;                                                                           \
  }

HANDLER(onebasin_xla_density, onebasin_densities(entry, count, argument(frame, 0), result(frame, 0), &first))
HANDLER(onebasin_xla_gradient,
        onebasin_gradients(entry, count, argument(frame, 0), result(frame, 0), result(frame, 1), &first))
HANDLER(onebasin_xla_product,
        onebasin_products(entry, count, argument(frame, 0), argument(frame, 1), result(frame, 0), &first))
HANDLER(onebasin_xla_constrain,
        onebasin_constrain(entry, count, argument(frame, 0), result(frame, 0), NULL, &first))
HANDLER(onebasin_xla_unconstrain,
        onebasin_unconstrain(entry, count, argument(frame, 0), result(frame, 0), &first))
