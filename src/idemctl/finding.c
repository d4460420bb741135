/* SPDX-License-Identifier: MIT */
/* finding: one line, or one object of JSON, of idemctl check. */
#include "check.h"

void check_finding(void *context, enum severity severity, const char *code, const char *path, const char *message)
{
    struct findings *findings = context;
    FILE *to = findings->ctl->out;
    findings->serious += severity != SEVERITY_INFO;
    if (!findings->ctl->json) {
        fprintf(to, "%-8s %-16s %s: %s\n", severity_name(severity), code, path, message);
    } else {
        fprintf(to, "%s{\"severity\":\"%s\",\"code\":\"%s\",\"path\":", findings->count ? "," : "",
                severity_name(severity), code);
        print_string(bytes_text(path), to);
        fputs(",\"message\":", to);
        print_string(bytes_text(message), to);
        fputc('}', to);
    }
    findings->count++;
}
