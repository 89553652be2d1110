// Package job keeps the background jobs of one connection: agent work that
// outlives the call that began it and is asked about by later calls.
//
// A Table holds the jobs and answers the tools that ask about them. It runs
// nothing itself: a provider starts a job, tells it what happens to the work
// and is told when it shall be cancelled. What the tools of two providers have
// in common is code here; in what they differ, names, codes, members and
// wording, is a Contract, which is data.
//
// All methods of a Table and of its Jobs belong to one goroutine, such as an
// event loop, or to the holders of one lock. Nothing here waits: a status call
// that has to wait gets its answer by a callback. Jobs live in memory, as long
// as their connection.
package job
