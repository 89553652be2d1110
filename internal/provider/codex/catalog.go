package codex

import "strings"

// newCatalog returns the tools for a list of models.
func newCatalog(models []string) catalog {
	open, reply := openArguments(models), replyArguments()
	id := argument{name: "jobId", kind: kindID, required: true, description: "The jobId that codex-start or codex-reply-start returned."}
	return catalog{
		{toolCodex, codexDescription, open, toolCodex},
		{toolReply, replyDescription, reply, toolReply},
		{toolStart, startDescription, open, toolCodex},
		{toolReplyStart, replyStartDescription, reply, toolReply},
		{toolStatus, statusDescription, []argument{id,
			{name: "cursor", kind: kindCount, required: true,
				description: "The cursor of the last status that you have seen; 0 at first."},
			{name: "wait_ms", kind: kindWait,
				description: "The longest time to wait for a change, in milliseconds. It is a ceiling on idle waiting only: a change " +
					"ends the wait at once, and the job goes on whatever it is. 0 looks without waiting."},
		}, ""},
		{toolCommentary, commentaryDescription, []argument{id,
			{name: "offset", kind: kindCount,
				description: "Where to go on reading, in code points: the nextOffset of the last page; 0 when it is left out."}}, ""},
		{toolResult, resultDescription, []argument{id,
			{name: "offset", kind: kindCount,
				description: "Where the page begins, in code points: the nextOffset of the last page; 0 when it is left out."}}, ""},
		{toolCancel, cancelDescription, []argument{id}, ""},
		{toolPeek, peekDescription, []argument{
			{name: "cwd", kind: kindPath, description: "Only turns in this directory, and those whose directory is not known."},
			{name: "threadId", kind: kindID, description: "Only turns of this thread."},
			{name: "requestId", kind: kindID, description: "Only the turn of this request, by its id with the type before it, such as number:3 or string:abc."},
		}, ""},
	}
}

func openArguments(models []string) []argument {
	return []argument{
		promptArgument,
		{name: "cwd", kind: kindPath, required: true,
			description: "Absolute path of an existing directory inside a workspace root, in which Codex works."},
		{name: "sandbox", kind: kindEnum, required: true,
			enum: []string{"read-only", "workspace-write", "danger-full-access"},
			description: "What commands may do: read-only writes nothing, workspace-write writes below cwd and to " +
				"temporary directories, danger-full-access drops Codex's own sandbox."},
		{name: "model", kind: kindEnum, enum: models, description: modelDescription(models)},
		{name: "model_reasoning_effort", kind: kindEnum, enum: []string{"medium", "high", "xhigh", "max"},
			description: "How much the model reasons: medium is balanced, high is for complex work, xhigh for hard " +
				"problems, max is quality-first and slowest. The server's own setting counts when it is left out. " +
				"Replies inherit it."},
		{name: "allow_subagents", kind: kindBoolean,
			description: "Whether Codex may start subagents of its own in this thread (default false). Replies inherit it."},
		{name: "goal", kind: kindString,
			description: "Standing objective that Codex pursues in every turn of this thread until it is superseded. " +
				"A blank text switches off a goal that the server sets."},
	}
}

func replyArguments() []argument {
	return []argument{
		promptArgument,
		{name: "threadId", kind: kindID, required: true,
			description: "The threadId in the result of the codex call that began the thread. Threads live as long as this server."},
		{name: "goal", kind: kindString,
			description: "Reminder of the standing objective, put before this prompt. It does not replace the goal that " +
				"the thread began with: start a new thread for that. A blank text switches off a goal that the server sets."},
	}
}

var promptArgument = argument{name: "prompt", kind: kindString, required: true, description: "What Codex shall do, in plain words."}

const codexDescription = "Begins a Codex thread: Codex works on the prompt in cwd until it is done, and the result carries " +
	"its answer and the threadId for codex-reply. A call that was cancelled or timed out may have edited files: look at the " +
	"working tree before you repeat it."

const replyDescription = "Continues a Codex thread with another prompt, in the same directory and with the same sandbox, " +
	"model, reasoning effort and subagent choice as the call that began it."

const (
	startDescription = "Begins a Codex thread as a background job and returns its jobId at once. Prefer codex, which costs one " +
		"turn of yours: use this for work that must outlive the call or run beside other work. Ask codex-status until the job " +
		"is over, then read codex-result. Jobs live as long as this connection."
	replyStartDescription = "Continues a Codex thread as a background job and returns its jobId at once. Prefer codex-reply: use " +
		"this for work that must outlive the call or run beside other work."
	statusDescription = "Tells how a background job is, and waits for a change first if there is none since cursor. wait_ms is a " +
		"ceiling on idle waiting only. Cancelling this call does not touch the job."
	commentaryDescription = "Pages through what Codex said while it worked on a background job, at most 32768 code points at a " +
		"time. It never waits, and holds no final answer, commands or reasoning."
	resultDescription = "Pages through the answer of a background job that is over, at most 32768 code points at a time. It can be " +
		"read again until an hour after the job's end."
	cancelDescription = "Asks for the end of a background job. Asking again changes nothing. Files that it has written stay, and " +
		"a command that it started may go on: look at the working tree."
	peekDescription = "Lists the Codex turns of this connection that run or are being cancelled, without touching them. An empty " +
		"list is not evidence that the work is finished: a turn that was given up, or a command of it, may still write."
)

// modelHints says what the models that we know are for.
var modelHints = map[string]string{
	"gpt-5.6-sol":   "for the most demanding work",
	"gpt-5.6-terra": "faster, for well-defined work",
}

func modelDescription(models []string) string {
	parts := make([]string, len(models))
	for i, m := range models {
		parts[i] = m
		if hint := modelHints[m]; hint != "" {
			parts[i] += " " + hint
		}
		if i == 0 {
			parts[i] += " (the default unless the server sets another)"
		}
	}
	return "The model of this thread: " + strings.Join(parts, "; ") + ". Replies inherit it."
}
