package model

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// handleMessages answers one request of the Anthropic Messages streaming API.
func (s *Server) handleMessages(w http.ResponseWriter, r *http.Request, body []byte) {
	req, err := parseMessagesRequest(body)
	if err != nil {
		s.refuseMessages(w, err)
		return
	}
	c := req.conversation()
	step, err := c.step(s.scenario)
	if err != nil {
		s.refuseMessages(w, err)
		return
	}
	if len(req.tools) == 0 && step.callsTool() {
		// The CLI asks for a title, or the like: that is not the turn.
		text := c.standardFinal()
		step = Step{Answer: &text}
	}
	if step.Status != nil {
		s.stats.refused.Add(1)
		writeMessagesStatus(w, *step.Status)
		return
	}
	use, err := req.use(step)
	if err != nil {
		s.refuseMessages(w, err)
		return
	}
	turn := &messagesTurn{n: req.count, model: req.model, use: use, sleep: s.sleep, stream: newEventStream(w)}
	switch err := turn.play(r.Context(), step); {
	case err != nil:
		s.stats.disconnected.Add(1)
	case step.Cut != nil:
		s.stats.cut.Add(1)
	default:
		s.stats.completed.Add(1)
	}
}

func (s *Server) refuseMessages(w http.ResponseWriter, err error) {
	s.stats.refused.Add(1)
	writeMessagesError(w, http.StatusBadRequest, err.Error())
}

// messagesTurn plays one step as the events of one message.
type messagesTurn struct {
	n      int // grows with each request of a conversation: ids made from it are unique there
	model  string
	use    *toolUse
	blocks int // content blocks so far
	stream *eventStream
	sleep  func(context.Context, time.Duration) error
}

// play returns an error only if the client or the server went away.
func (t *messagesTurn) play(ctx context.Context, step Step) error {
	if err := t.send("message_start", map[string]any{"message": map[string]any{
		"id": fmt.Sprintf("msg_%d", t.n), "type": "message", "role": "assistant", "model": t.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage(1),
	}}); err != nil {
		return err
	}
	switch {
	case step.Cut != nil:
		return nil
	case t.use != nil:
		return t.callTool(step.Commentary)
	case step.Stall != nil:
		if err := stall(ctx, *step.Stall, t.sleep); err != nil {
			return err
		}
		return t.say(ctx, 0, "stall over")
	case step.Slow != nil:
		ticks := make([]string, step.Slow.Deltas)
		for i := range ticks {
			ticks[i] = fmt.Sprintf("tick%d ", i)
		}
		return t.say(ctx, step.Slow.interval(), ticks...)
	case step.Megabyte != nil:
		return t.say(ctx, 0, step.Megabyte.Text())
	}
	return t.say(ctx, 0, *step.Answer)
}

// say ends the turn with a text in deltas.
func (t *messagesTurn) say(ctx context.Context, pause time.Duration, deltas ...string) error {
	if err := t.text(ctx, pause, deltas...); err != nil {
		return err
	}
	return t.finish("end_turn")
}

// callTool sends the tool call, behind a text if there is one.
func (t *messagesTurn) callTool(commentary string) error {
	if commentary != "" {
		if err := t.text(context.Background(), 0, commentary); err != nil {
			return err
		}
	}
	input, err := encodeJSON(t.use.Input)
	if err != nil {
		return err
	}
	block := map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", t.n), "name": t.use.Name, "input": map[string]any{}}
	if err := t.block(block, func(delta func(map[string]any) error) error {
		return delta(map[string]any{"type": "input_json_delta", "partial_json": strings.TrimSpace(string(input))})
	}); err != nil {
		return err
	}
	return t.finish("tool_use")
}

func (t *messagesTurn) text(ctx context.Context, pause time.Duration, deltas ...string) error {
	return t.block(map[string]any{"type": "text", "text": ""}, func(delta func(map[string]any) error) error {
		for _, text := range deltas {
			if err := delta(map[string]any{"type": "text_delta", "text": text}); err != nil {
				return err
			}
			if pause > 0 {
				if err := t.sleep(ctx, pause); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// block sends one content block, whose deltas fill sends.
func (t *messagesTurn) block(start map[string]any, fill func(delta func(map[string]any) error) error) error {
	index := t.blocks
	t.blocks++
	if err := t.send("content_block_start", map[string]any{"index": index, "content_block": start}); err != nil {
		return err
	}
	if err := fill(func(delta map[string]any) error {
		return t.send("content_block_delta", map[string]any{"index": index, "delta": delta})
	}); err != nil {
		return err
	}
	return t.send("content_block_stop", map[string]any{"index": index})
}

func (t *messagesTurn) finish(reason string) error {
	if err := t.send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": map[string]int{"output_tokens": 10},
	}); err != nil {
		return err
	}
	return t.send("message_stop", map[string]any{})
}

func (t *messagesTurn) send(name string, event map[string]any) error {
	event["type"] = name
	return t.stream.send(name, event)
}

// usage is made up but not zero, so that a client's token accounting has
// something to count.
func usage(output int) map[string]int {
	return map[string]int{"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 40, "output_tokens": output}
}

// messagesErrors are the error types of the API by status.
var messagesErrors = map[int]string{
	http.StatusBadRequest: "invalid_request_error", http.StatusUnauthorized: "authentication_error",
	http.StatusForbidden: "permission_error", http.StatusNotFound: "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error", 529: "overloaded_error",
}

// writeMessagesError answers with an error object of this API.
func writeMessagesError(w http.ResponseWriter, status int, message string) {
	kind := messagesErrors[status]
	if kind == "" {
		kind = "api_error"
	}
	writeJSON(w, status, map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": message}})
}

func writeMessagesStatus(w http.ResponseWriter, status Status) {
	if status.Body == nil {
		writeMessagesError(w, status.Code, fmt.Sprintf("scripted error %d", status.Code))
		return
	}
	writeJSON(w, status.Code, status.Body)
}

// isMessages tells requests of this API from those of the other.
func isMessages(r *http.Request) bool {
	return r.Method == http.MethodPost && (strings.HasSuffix(r.URL.Path, "/messages") || isCountTokens(r))
}

func isCountTokens(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/messages/count_tokens")
}

// countTokens answers with a guess that grows with the request.
func countTokens(w http.ResponseWriter, body []byte) {
	writeJSON(w, http.StatusOK, map[string]int{"input_tokens": max(1, len(body)/4)})
}
