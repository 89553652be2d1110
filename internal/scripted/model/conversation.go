package model

import "unicode/utf8"

// lastOutputChars is how much of the last tool output the standard final
// message repeats, in code points.
const lastOutputChars = 1500

// conversation is what a script needs to know of a request, whatever the API.
type conversation struct {
	// prompt is the text of the last message that the user wrote.
	prompt string
	// toolOutputs counts the distinct tool calls answered since the prompt.
	toolOutputs int
	// lastOutput is the text of the latest of them.
	lastOutput string
}

// step picks what to do: the directives of the prompt if it has any, else the
// scenario; the standard final message behind either.
func (c conversation) step(sc *Scenario) (Step, error) {
	steps, err := ParseDirectives(c.prompt)
	if err != nil {
		return Step{}, err
	}
	final := ""
	if len(steps) == 0 && sc != nil {
		steps, final = sc.Steps, sc.Final
	}
	if c.toolOutputs < len(steps) {
		step := steps[c.toolOutputs]
		if step.Tool != nil {
			step.Tool, err = c.fill(*step.Tool)
		}
		return step, err
	}
	if final == "" {
		final = c.standardFinal()
	}
	return Step{Answer: &final}, nil
}

func (c conversation) standardFinal() string {
	text := "OK from the scripted model"
	if c.toolOutputs > 0 {
		text += "; last tool output: " + lastChars(c.lastOutput, lastOutputChars)
	}
	return text
}

// lastChars returns the last n code points of s.
func lastChars(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}
