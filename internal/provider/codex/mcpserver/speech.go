package mcpserver

import (
	"strings"
	"unicode/utf8"
)

// Speech follows what an agent says while it works: its messages of the phase
// commentary, as they are streamed. Its final answer is none of them. The zero
// value is ready.
type Speech struct {
	items    map[string]*spoken // begun and not completed
	streamed bool               // there was one: then whole messages are repetitions
}

// spoken is what has been said of one message.
type spoken struct {
	text strings.Builder
}

// recent is how much of a message that is being said is told, in code points.
const recent = 400

// maxSpeaking bounds the messages that have begun and not ended.
const maxSpeaking = 64

func speaks(kind string) bool {
	switch kind {
	case "item_started", "item_completed", "agent_message_content_delta", "agent_message":
		return true
	}
	return false
}

// Hear takes an event. It returns what to add to a record of all that was said,
// and what to tell now, both empty for most events.
func (s *Speech) Hear(e *Event) (record, tell string) {
	commentary := e.Item.Type == "AgentMessage" && e.Item.Phase == "commentary"
	switch {
	case e.Type == "item_started" && commentary && e.Item.ID != "":
		s.begin(e.Item.ID)
	case e.Type == "agent_message_content_delta" && s.items[e.ItemID] != nil:
		said := &s.items[e.ItemID].text
		said.WriteString(e.Delta)
		return e.Delta, lastOf(said.String(), recent)
	case e.Type == "item_completed" && commentary:
		return s.complete(&e.Item)
	case e.Type == "agent_message" && e.Phase == "commentary":
		if s.streamed || e.Message == "" {
			return "", e.Message
		}
		return e.Message + "\n\n", e.Message
	}
	return "", ""
}

func (s *Speech) begin(id string) {
	s.streamed = true
	if s.items == nil {
		s.items = map[string]*spoken{}
	}
	if s.items[id] == nil && len(s.items) < maxSpeaking {
		s.items[id] = &spoken{}
	}
}

// complete takes a message at its end, whose text may be more than was streamed.
func (s *Speech) complete(item *Item) (record, tell string) {
	s.streamed = true
	said := ""
	if known := s.items[item.ID]; known != nil {
		said = known.text.String()
		delete(s.items, item.ID)
	}
	whole := item.text()
	if whole == "" {
		whole = said
	}
	rest, ok := strings.CutPrefix(whole, said)
	if !ok { // said otherwise: it has been recorded as it came
		rest = ""
	}
	if whole == "" {
		return "", ""
	}
	return rest + "\n\n", whole
}

// text joins the parts of the item's text.
func (i *Item) text() string {
	var b strings.Builder
	for _, p := range i.Content {
		if p.Type == "Text" {
			b.WriteString(p.Text)
		}
	}
	if b.Len() == 0 {
		return i.Message
	}
	return b.String()
}

// lastOf returns the last n code points of s.
func lastOf(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}
