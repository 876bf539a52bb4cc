/* A Stan library's functions as custom calls of XLA, on a processor: no Python, no lock of Python's.
 *
 * An entry says what is called. Its address is the only attribute of a call, and its memory is never given back, so
 * that a compiled program that outlives its model meets an entry without a model and not a model that is gone.
 * Every call takes one point or many, (..., size); a point that the model refuses has log density -inf, and NaN where
 * a gradient or a value would be.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "xla/ffi/api/c_api.h"

typedef struct {
  void* model; /* NULL once it is closed */
  int64_t values;  /* numbers that `constrain` gives */
  int64_t derived; /* whether what follows from the parameters is among them */
  int (*densities)(const void*, bool, bool, size_t, const double*, double*, char**);
  int (*gradients)(const void*, bool, bool, size_t, const double*, double*, double*, char**);
  int (*product)(const void*, bool, bool, const double*, const double*, double*, double*, char**);
  int (*constrain)(const void*, bool, bool, const double*, double*, void*, char**);
  int (*unconstrain)(const void*, size_t, const double*, double*, char**);
  void* (*new_rng)(unsigned int, char**);
  void (*end_rng)(void*);
  void (*free_message)(char*);
} Entry;

Entry* onebasin_entry(const Entry* like) {
  Entry* entry = malloc(sizeof(Entry));
  if (entry) *entry = *like;
  return entry;
}

void onebasin_close(Entry* entry) { entry->model = NULL; }

static XLA_FFI_Error* fail(XLA_FFI_CallFrame* frame, const char* message) {
  XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL, message,
                                    XLA_FFI_Error_Code_FAILED_PRECONDITION};
  return frame->api->XLA_FFI_Error_Create(&args);
}

/* Whether XLA only asks which version of its interface this was compiled against; answered here. */
static bool answered(XLA_FFI_CallFrame* frame) {
  XLA_FFI_InternalExtension* first = frame->extension_start;
  if (!first || first->type != XLA_FFI_Extension_Metadata) return false;
  XLA_FFI_Metadata* said = ((XLA_FFI_Metadata_Extension*)first)->metadata;
  said->api_version.major_version = XLA_FFI_API_MAJOR;
  said->api_version.minor_version = XLA_FFI_API_MINOR;
  said->traits = 0;
  return true;
}

static Entry* entry_of(XLA_FFI_CallFrame* frame) {
  XLA_FFI_Scalar* only = (XLA_FFI_Scalar*)frame->attrs.attrs[0];
  return (Entry*)(intptr_t)(*(int64_t*)only->value);
}

static double* argument(XLA_FFI_CallFrame* frame, int place) {
  return (double*)((XLA_FFI_Buffer*)frame->args.args[place])->data;
}

static double* result(XLA_FFI_CallFrame* frame, int place) {
  return (double*)((XLA_FFI_Buffer*)frame->rets.rets[place])->data;
}

typedef struct {
  int64_t count, size;
} Points;

static Points points_of(XLA_FFI_CallFrame* frame) {
  XLA_FFI_Buffer* buffer = (XLA_FFI_Buffer*)frame->args.args[0];
  Points points = {1, buffer->dims[buffer->rank - 1]};
  for (int64_t axis = 0; axis + 1 < buffer->rank; axis++) points.count *= buffer->dims[axis];
  return points;
}

static void nothing(double* values, int64_t count) {
  for (int64_t i = 0; i < count; i++) values[i] = NAN;
}

/* What a call came to: an error of XLA's where the model could not be called at all. */
static XLA_FFI_Error* outcome(XLA_FFI_CallFrame* frame, Entry* entry, int code, char* message) {
  XLA_FFI_Error* error = NULL;
  if (code < 0) error = fail(frame, message ? message : "the Stan model failed without a word");
  if (message) entry->free_message(message);
  return error;
}

#define BEGIN                                                                        \
  if (answered(frame)) return NULL;                                                  \
  Entry* entry = entry_of(frame);                                                    \
  if (!entry->model) return fail(frame, "the Stan model of this program is closed"); \
  Points points = points_of(frame);                                                  \
  const double* at = argument(frame, 0);                                             \
  char* message = NULL

/* Log density (...): with its constants and the Jacobian, as all calls here. */
XLA_FFI_Error* onebasin_density(XLA_FFI_CallFrame* frame) {
  BEGIN;
  int code = entry->densities(entry->model, false, true, points.count, at, result(frame, 0), &message);
  return outcome(frame, entry, code, message);
}

/* Log density (...) and gradient (..., size). */
XLA_FFI_Error* onebasin_gradient(XLA_FFI_CallFrame* frame) {
  BEGIN;
  int code = entry->gradients(entry->model, false, true, points.count, at, result(frame, 0),
                              result(frame, 1), &message);
  return outcome(frame, entry, code, message);
}

/* Hessian times a vector (..., size). */
XLA_FFI_Error* onebasin_product(XLA_FFI_CallFrame* frame) {
  BEGIN;
  const double* along = argument(frame, 1);
  double value, *product = result(frame, 0);
  for (int64_t here = 0; here < points.count * points.size; here += points.size) {
    if (entry->product(entry->model, false, true, at + here, along + here, &value, product + here,
                       &message))
      nothing(product + here, points.size);
    outcome(frame, entry, 0, message);
    message = NULL;
  }
  return NULL;
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

/* Values (..., values) at points: of the parameters, or of all that a program declares after its data. */
XLA_FFI_Error* onebasin_constrain(XLA_FFI_CallFrame* frame) {
  BEGIN;
  bool all = entry->derived;
  double* values = result(frame, 0);
  for (int64_t i = 0; i < points.count; i++, values += entry->values) {
    const double* point = at + i * points.size;
    void* rng = all ? entry->new_rng(seed_at(point, points.size), &message) : NULL;
    if (entry->constrain(entry->model, all, all, point, values, rng, &message))
      nothing(values, entry->values);
    if (rng) entry->end_rng(rng);
    outcome(frame, entry, 0, message);
    message = NULL;
  }
  return NULL;
}

/* Points at values (..., values) of the parameters; NaN where these are outside of their support. */
XLA_FFI_Error* onebasin_unconstrain(XLA_FFI_CallFrame* frame) {
  BEGIN;
  int code = entry->unconstrain(entry->model, points.count, at, result(frame, 0), &message);
  return outcome(frame, entry, code, message);
}
