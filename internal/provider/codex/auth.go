package codex

import (
	"encoding/json"
	"strings"
)

const (
	codeLogin = "codex_auth_invalidated"
	textLogin = "Codex's login is not valid any more for this process. Stop this server, run `codex logout` and `codex login` as the " +
		"same OS user, check with `codex exec`, then restart or reconnect."
)

// refusals are what a failed turn says when its login was refused. Codex has no
// code for it in a result.
var refusals = []string{
	"refresh_token_invalidated",
	"refresh token was revoked",
	"refresh token has been revoked",
	"authentication token has been invalidated",
}

// loginRefused reports whether a turn's result is an error that says so. One of
// more than 10 MiB is passed on in pieces and is not looked at: what Codex says
// of a refused login is a sentence, and its event says it as well.
func loginRefused(result json.RawMessage) bool {
	var r struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(result, &r) != nil || !r.IsError {
		return false
	}
	for _, c := range r.Content {
		text := strings.ToLower(c.Text)
		for _, refusal := range refusals {
			if strings.Contains(text, refusal) {
				return true
			}
		}
	}
	return false
}

// invalidateLogin notes, for the rest of the process, that the login is not
// accepted: no further turn begins, and nothing is written back. Turns that run
// may finish.
func (b *bridge) invalidateLogin() {
	if b.loginInvalid {
		return
	}
	b.loginInvalid = true
	b.Log.Error(codeLogin + ": Codex reported that its login is not valid; no further turn is started by this process")
	if b.Child != nil && b.session.child.Invalidate != nil {
		b.session.child.Invalidate()
	}
}

// failUnauthorized answers r with what to do about the login. The provider's
// own text may hold what the client must not see.
func (b *bridge) failUnauthorized(r *request) {
	if r.job != nil {
		b.Settle(r)
		r.job.Fail(textLogin, codeLogin)
		return
	}
	b.Respond(r, loginResult(r.threadID()))
}

func loginResult(thread string) any {
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type structured struct {
		Code     string `json:"code"`
		Action   string `json:"action"`
		Content  string `json:"content"`
		ThreadID string `json:"threadId,omitempty"`
	}
	return struct {
		Content    []content  `json:"content"`
		Structured structured `json:"structuredContent"`
		IsError    bool       `json:"isError"`
	}{[]content{{"text", textLogin}}, structured{codeLogin, "reauthenticate_and_restart", textLogin, thread}, true}
}
