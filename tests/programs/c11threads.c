/* SPDX-License-Identifier: MIT */
/*
 * c11threads: the C11 thread calls, made of the POSIX ones; a library to preload when a program
 * runs under ThreadSanitizer. The sanitizer watches only the POSIX calls: a thread that librdkafka
 * makes by thrd_create is unknown to it and crashes it. glibc's types are the same underneath.
 * For scripts/test alone.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(thrd_t) == sizeof(pthread_t), "a C11 thread is a POSIX thread");
_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "a C11 mutex is a POSIX mutex");

struct start {
    thrd_start_t function;
    void *argument;
};

static void *start_run(void *opaque)
{
    struct start start = *(struct start *)opaque;
    free(opaque);
    return (void *)(intptr_t)start.function(start.argument);
}

int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
    struct start *start = malloc(sizeof(*start));
    if (!start)
        return thrd_nomem;
    *start = (struct start){function, argument};
    if (pthread_create(thread, NULL, start_run, start)) {
        free(start);
        return thrd_error;
    }
    return thrd_success;
}

int thrd_join(thrd_t thread, int *result)
{
    void *value = NULL;
    if (pthread_join(thread, &value))
        return thrd_error;
    if (result)
        *result = (int)(intptr_t)value;
    return thrd_success;
}

int thrd_detach(thrd_t thread)
{
    return pthread_detach(thread) ? thrd_error : thrd_success;
}

int mtx_lock(mtx_t *mutex)
{
    return pthread_mutex_lock((pthread_mutex_t *)mutex) ? thrd_error : thrd_success;
}

int mtx_unlock(mtx_t *mutex)
{
    return pthread_mutex_unlock((pthread_mutex_t *)mutex) ? thrd_error : thrd_success;
}

void mtx_destroy(mtx_t *mutex)
{
    pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    int status = pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex);
    return status ? thrd_error : thrd_success;
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
                  const struct timespec *restrict until)
{
    int status =
        pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until);
    if (status == ETIMEDOUT)
        return thrd_timedout;
    return status ? thrd_error : thrd_success;
}

int cnd_signal(cnd_t *condition)
{
    return pthread_cond_signal((pthread_cond_t *)condition) ? thrd_error : thrd_success;
}

int cnd_broadcast(cnd_t *condition)
{
    return pthread_cond_broadcast((pthread_cond_t *)condition) ? thrd_error : thrd_success;
}
