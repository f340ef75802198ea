/*
 * Swallows the calls that make data durable, and leaves descriptors that sync by themselves alone. Preloaded into a server
 * (LD_PRELOAD) by layers.py, as people preload libeatmydata.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

int
fsync(int file)
{
	(void) file;
	return 0;
}

int
fdatasync(int file)
{
	(void) file;
	return 0;
}

int
sync_file_range(int file, off_t offset, off_t length, unsigned int flags)
{
	(void) file, (void) offset, (void) length, (void) flags;
	return 0;
}
