// Package vfs is the small part of a file system that the log on disk needs, as an
// interface with two implementations: [OS], and [Mem], which lives in memory and
// can crash.
//
// It owns the difference between "written" and "durable". Bytes written to a
// [File] are durable after [File.Sync]; a name created, renamed or removed is
// durable after [FS.SyncDir] on its directory. [OS] passes both to the kernel;
// [Mem] keeps both states apart, so that a test can ask for the file system as a
// power cut would leave it, at its harshest ([Mem.Crash]) or at random
// ([Mem.RandomCrash]), make single operations fail ([Mem.SetFault], [Faults]), fill the
// disk up ([Mem.SetCapacity]), or keep a copy and come back to it ([Mem.Clone]).
//
// Paths are slash-separated. Errors are those of package os: errors.Is with
// fs.ErrNotExist, and [IsNoSpace] for a full disk, work on both.
//
// Start reading at vfs.go; history.go and power.go say what a power cut may leave.
package vfs
