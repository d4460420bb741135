/* SPDX-License-Identifier: MIT */
/*
 * mockbroker: librdkafka's mock cluster as a broker of its own process, for the demo and for tests
 * without Java. It speaks enough of Kafka for producers, groups and offsets; it keeps everything
 * in memory, has no retention, and forgets all when it ends. Never for production.
 *
 *     mockbroker [--brokers N] --topic NAME:PARTITIONS [--topic ...]
 *
 * Prints `bootstrap=HOST:PORT[,HOST:PORT...]` on stdout once it answers, then runs until SIGTERM,
 * SIGINT or the end of its standard input (so that it never outlives who started it by a pipe).
 * Exit codes: 0 ended so, 64 usage, 70 the cluster could not be made.
 */
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { BROKERS_MAX = 16, TOPICS_MAX = 64, PARTITIONS_MAX = 1000, NAME_BYTES_MAX = 249 };

struct topic {
    char name[NAME_BYTES_MAX + 1];
    int partitions;
};

struct args {
    int brokers;
    size_t topic_count;
    struct topic topics[TOPICS_MAX];
};

static int usage(void)
{
    fputs("usage: mockbroker [--brokers N] --topic NAME:PARTITIONS [--topic ...]\n", stderr);
    return 64;
}

/* A whole decimal number of 1..max, or 0. */
static int number_parse(const char *text, int max)
{
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 1 || value > max)
        return 0;
    return (int)value;
}

/* NAME:PARTITIONS; a name holds no colon. */
static int topic_parse(const char *text, struct topic *ret)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || (size_t)(colon - text) > NAME_BYTES_MAX)
        return -1;
    size_t len = (size_t)(colon - text);
    memcpy(ret->name, text, len);
    ret->name[len] = 0;
    ret->partitions = number_parse(colon + 1, PARTITIONS_MAX);
    return ret->partitions ? 0 : -1;
}

static int args_parse(int argc, char **argv, struct args *ret)
{
    ret->brokers = 1;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            return -1;
        if (!strcmp(argv[i], "--brokers")) {
            ret->brokers = number_parse(argv[i + 1], BROKERS_MAX);
            if (!ret->brokers)
                return -1;
        } else if (!strcmp(argv[i], "--topic")) {
            if (ret->topic_count == TOPICS_MAX ||
                topic_parse(argv[i + 1], &ret->topics[ret->topic_count]))
                return -1;
            ret->topic_count++;
        } else {
            return -1;
        }
    }
    return ret->topic_count ? 0 : -1;
}

/* Waits for a signal or for the end of standard input; what comes in there is thrown away. */
static void wait_for_end(int signals)
{
    struct pollfd fds[] = {{.fd = signals, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    for (;;) {
        if (poll(fds, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            return;
        }
        if (fds[0].revents)
            return;
        if (fds[1].revents) {
            char scratch[4096];
            ssize_t got = read(0, scratch, sizeof(scratch));
            if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
                return;
        }
    }
}

static int cluster_serve(rd_kafka_t *handle, const struct args *args, int signals)
{
    rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(handle, args->brokers);
    if (!cluster) {
        fputs("mockbroker: the cluster could not be made\n", stderr);
        return 70;
    }
    int status = 0;
    for (size_t i = 0; i < args->topic_count && !status; i++) {
        rd_kafka_resp_err_t err = rd_kafka_mock_topic_create(
            cluster, args->topics[i].name, args->topics[i].partitions, args->brokers);
        if (err) {
            fprintf(stderr, "mockbroker: topic %s: %s\n", args->topics[i].name,
                    rd_kafka_err2str(err));
            status = 70;
        }
    }
    if (!status) {
        printf("bootstrap=%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
        fflush(stdout);
        wait_for_end(signals);
    }
    rd_kafka_mock_cluster_destroy(cluster);
    return status;
}

int main(int argc, char **argv)
{
    static struct args args;
    if (args_parse(argc, argv, &args))
        return usage();

    /* Blocked before librdkafka makes its threads, which inherit the mask. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (signals < 0) {
        perror("mockbroker: signalfd");
        return 70;
    }

    char text[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "log_level", "3", NULL, 0);
    rd_kafka_t *handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    if (!handle) {
        rd_kafka_conf_destroy(conf);
        fprintf(stderr, "mockbroker: %s\n", text);
        close(signals);
        return 70;
    }
    int status = cluster_serve(handle, &args, signals);
    rd_kafka_destroy(handle);
    close(signals);
    return status;
}
