package model

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// handleResponses answers one request of the OpenAI Responses streaming API.
func (s *Server) handleResponses(w http.ResponseWriter, r *http.Request, body []byte) {
	req, err := parseResponsesRequest(body)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	step, err := req.conversation().step(s.scenario)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if step.Status != nil {
		s.stats.refused.Add(1)
		writeStatus(w, *step.Status)
		return
	}
	// The number of items grows with every request of a thread, so ids made
	// from it are unique in the thread without any memory here.
	turn := &responsesTurn{n: len(req.items), sleep: s.sleep}
	if err := turn.prepare(req.tools, step); err != nil {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	turn.stream = newEventStream(w)
	switch err := turn.play(r.Context(), step); {
	case err != nil:
		s.stats.disconnected.Add(1)
	case step.Cut != nil:
		s.stats.cut.Add(1)
	default:
		s.stats.completed.Add(1)
	}
}

// responsesTurn plays one step as the events of one response.
type responsesTurn struct {
	n      int
	call   *outputItem // the tool call of the step, if it makes one
	stream *eventStream
	sleep  func(context.Context, time.Duration) error
}

// prepare finds out whether the step can be played with the declared tools,
// while an HTTP error can still be sent.
func (t *responsesTurn) prepare(tools toolSet, step Step) error {
	var item outputItem
	var err error
	switch {
	case step.Exec != nil:
		item, err = tools.shellItem(t.n, *step.Exec)
	case step.ApplyPatch != nil:
		item, err = tools.patchItem(t.n, *step.ApplyPatch)
	case step.Tool != nil:
		item, err = tools.callItem(t.n, *step.Tool)
	default:
		return nil
	}
	t.call = &item
	return err
}

// play returns an error only if the client or the server went away.
func (t *responsesTurn) play(ctx context.Context, step Step) error {
	created := map[string]any{"type": "response.created", "response": map[string]any{"id": t.id()}}
	if err := t.stream.send("response.created", created); err != nil {
		return err
	}
	switch {
	case step.Cut != nil:
		return nil
	case t.call != nil && step.Commentary != "":
		item := messageItem(t.n, step.Commentary)
		item.Phase = "commentary"
		if err := t.begin(item); err != nil {
			return err
		}
		if err := t.delta(item, step.Commentary); err != nil {
			return err
		}
		return t.finish(item, *t.call)
	case t.call != nil:
		return t.finish(*t.call)
	case step.Stall != nil:
		if err := stall(ctx, *step.Stall, t.sleep); err != nil {
			return err
		}
		return t.finish(messageItem(t.n, "stall over"))
	case step.Slow != nil:
		text, err := t.slow(ctx, *step.Slow)
		if err != nil {
			return err
		}
		return t.finish(messageItem(t.n, text))
	case step.Megabyte != nil:
		return t.finish(messageItem(t.n, step.Megabyte.Text()))
	}
	return t.finish(messageItem(t.n, *step.Answer))
}

func (t *responsesTurn) id() string { return fmt.Sprintf("resp_%d", t.n) }

// stall is the silence of a step.
func stall(ctx context.Context, s Stall, sleep func(context.Context, time.Duration) error) error {
	if s.Seconds == 0 {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return sleep(ctx, time.Duration(s.Seconds)*time.Second)
}

// slow streams the deltas and returns the whole text.
func (t *responsesTurn) slow(ctx context.Context, slow Slow) (string, error) {
	item := messageItem(t.n, "")
	if err := t.begin(item); err != nil {
		return "", err
	}
	var text strings.Builder
	for i := range slow.Deltas {
		delta := fmt.Sprintf("tick%d ", i)
		text.WriteString(delta)
		if err := t.delta(item, delta); err != nil {
			return "", err
		}
		if err := t.sleep(ctx, slow.interval()); err != nil {
			return "", err
		}
	}
	return text.String(), nil
}

// begin announces a message whose text follows in deltas.
func (t *responsesTurn) begin(item outputItem) error {
	item.Content = []contentPart{}
	return t.stream.send("response.output_item.added", map[string]any{
		"type": "response.output_item.added", "output_index": 0, "item": item})
}

func (t *responsesTurn) delta(item outputItem, text string) error {
	return t.stream.send("response.output_text.delta", map[string]any{
		"type": "response.output_text.delta", "item_id": item.ID,
		"output_index": 0, "content_index": 0, "delta": text})
}

// finish sends the items and the terminal event. The usage is made up but not
// zero, so that a client's token accounting has something to count.
func (t *responsesTurn) finish(items ...outputItem) error {
	for i, item := range items {
		done := map[string]any{"type": "response.output_item.done", "output_index": i, "item": item}
		if err := t.stream.send("response.output_item.done", done); err != nil {
			return err
		}
	}
	return t.stream.send("response.completed", map[string]any{
		"type": "response.completed",
		"response": map[string]any{
			"id": t.id(), "output": items,
			"usage": map[string]any{
				"input_tokens": 100, "input_tokens_details": map[string]int{"cached_tokens": 40},
				"output_tokens": 10, "output_tokens_details": map[string]int{"reasoning_tokens": 3},
				"total_tokens": 110,
			},
		},
	})
}
