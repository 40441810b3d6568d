// Package vfs is the small part of a file system that the log on disk needs, as an
// interface with two implementations: [OS], and [Mem], which lives in memory and
// can crash.
//
// It owns the difference between "written" and "durable". Bytes written to a
// [File] are durable after [File.Sync]; a name created, renamed or removed is
// durable after [FS.SyncDir] on its directory. [OS] passes both to the kernel;
// [Mem] keeps both states apart, so that a test can ask for the file system as a
// power cut would leave it ([Mem.Crash]), make single operations fail
// ([Mem.SetFault]) or fill the disk up ([Mem.SetCapacity]).
//
// Paths are slash-separated. Errors are those of package os: errors.Is with
// fs.ErrNotExist, and [IsNoSpace] for a full disk, work on both.
//
// Start reading at vfs.go.
package vfs
