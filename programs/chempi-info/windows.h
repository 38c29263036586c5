/* SPDX-License-Identifier: BSD-3-Clause */
/* chempi-info --windows: how one-sided operations reach other ranks. */
#ifndef CHEMPI_PROGRAMS_CHEMPI_INFO_WINDOWS_H
#define CHEMPI_PROGRAMS_CHEMPI_INFO_WINDOWS_H

/* In all processes of a job: make a window of each kind, let rank 0 operate on
 * all ranks, and print from there what each operation has used. Starts and
 * ends MPI; 0, or -1 when the tool interface fails. */
int chempi_info_windows(void);

#endif
