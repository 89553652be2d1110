package job

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// Limits that both contracts share.
const (
	MaxActive   = 8         // jobs that are not over
	MaxRetained = 32        // jobs at all
	Retention   = time.Hour // of a job after its end
	// PageSize is the longest page of a result or of commentary, in code points.
	PageSize = 32768
	// MaxWait is the longest wait of a status call.
	MaxWait = 60 * time.Second
	// MaxCommentary is how much commentary of a job is kept, in bytes of UTF-8.
	MaxCommentary = 1 << 20
)

// Contract is the outside of a provider's job tools.
type Contract struct {
	// Label begins every message and text, such as "Codex".
	Label string
	// Names of the tools that answers refer to.
	Status, Result string
	// CapacityCode is the code of a start that is refused.
	CapacityCode string

	// The members of each kind of answer, in order.
	Started    Shape // of a start
	Report     Shape // of status and cancel
	Pending    Shape // of a result that is not there yet
	Failed     Shape // of the result of a job that has none
	Page       Shape // of a page of a result
	OutOfRange Shape // of an offset behind the end of a result
	Heard      Shape // of a page of commentary; nil if there is none
	Behind     Shape // of an offset behind the end of commentary

	// StatusIsActivity says that a change of status counts as activity, beside
	// what the agent itself lets hear.
	StatusIsActivity bool

	// Hints end the text of a report, by what the caller can do next. They may
	// name {job}, the job's id, and {cursor}.
	HintWait, HintResult, HintFailed string

	Wording Wording
}

// Shape names the members of an answer in their order. A member that has no
// value at the time is left out.
type Shape []string

// Wording is how a contract words the problem of a number among the arguments.
type Wording struct {
	Integer  string // a cursor or an offset
	Wait     string // wait_ms that is no number of the right kind
	WaitLong string // wait_ms above MaxWait
}

// Codex is the contract of provider codex.
var Codex = Contract{
	Label: "Codex", Status: "codex-status", Result: "codex-result", CapacityCode: "capacity_exceeded",
	Started: Shape{"jobId", "state", "cursor", "message", "commentaryStartOffset", "commentaryEndOffset", "next"},
	Report: Shape{"jobId", "state", "cursor", "message", "elapsedSeconds", "lastActivitySeconds", "threadId", "code",
		"resultAvailable", "resultTruncated", "commentaryStartOffset", "commentaryEndOffset", "commentaryTruncated"},
	Pending:    Shape{"jobId", "state", "resultAvailable", "next"},
	Failed:     Shape{"jobId", "state", "code", "resultAvailable"},
	Page:       Shape{"jobId", "state", "threadId", "offset", "nextOffset", "endOffset", "done", "resultTruncated", "text"},
	OutOfRange: Shape{"code", "jobId", "offset"},
	Heard: Shape{"jobId", "state", "latestStatus", "requestedOffset", "startOffset", "nextOffset", "endOffset", "caughtUp",
		"commentaryComplete", "truncatedBefore", "text"},
	Behind:     Shape{"code", "jobId", "requestedOffset", "startOffset", "endOffset"},
	HintWait:   "\n\nCall codex-status with jobId {job} and cursor {cursor} to wait for the next change.",
	HintResult: "\n\nCall codex-result with jobId {job} and offset 0 to read the answer.",
	HintFailed: "\n\nThe job is over and has no result. Look at the working tree before you repeat it.",
	Wording: Wording{Integer: "must be a nonnegative integer", Wait: "must be an integer from 0 to 60000",
		WaitLong: "must be an integer from 0 to 60000"},
}

// Claude is the contract of provider claude.
var Claude = Contract{
	Label: "Claude", Status: "claude-status", Result: "claude-result", CapacityCode: "job_capacity_full",
	Started: Shape{"jobId", "state", "cursor", "message", "resultAvailable", "next"},
	Report: Shape{"jobId", "state", "cursor", "message", "elapsedSeconds", "lastActivitySeconds", "resultAvailable",
		"resultTruncated", "nextStep"},
	Pending:    Shape{"jobId", "state", "resultAvailable", "next"},
	Failed:     Shape{"jobId", "state", "resultAvailable"},
	Page:       Shape{"jobId", "state", "offset", "nextOffset", "endOffset", "done", "resultTruncated", "text"},
	OutOfRange: Shape{"code", "jobId", "offset", "endOffset"},

	StatusIsActivity: true,
	Wording: Wording{Integer: "must be a non-negative integer", Wait: "must be a non-negative integer",
		WaitLong: "must be at most 60000"},
}

// Number reads a cursor or an offset. The problem is empty if there is none.
// A number that is written with a fraction or an exponent counts by its value.
func (w Wording) Number(raw json.RawMessage) (n int, problem string) {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < 0 || f != math.Trunc(f) || math.IsInf(f, 0) || strings.ContainsAny(string(raw), "xX_nNiI") {
		return 0, w.Integer
	}
	return int(min(f, 1<<53)), ""
}

// WaitTime reads wait_ms.
func (w Wording) WaitTime(raw json.RawMessage) (wait time.Duration, problem string) {
	ms, problem := w.Number(raw)
	switch {
	case problem != "":
		return 0, w.Wait
	case ms > int(MaxWait/time.Millisecond):
		return 0, w.WaitLong
	}
	return time.Duration(ms) * time.Millisecond, ""
}
