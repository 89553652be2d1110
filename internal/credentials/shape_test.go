package credentials

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheckReplacement(t *testing.T) {
	const (
		key    = `{"OPENAI_API_KEY":"k"}`
		tokens = `{"tokens":{"access_token":"a","refresh_token":"r","account_id":"me"}}`
	)
	tests := map[string]struct{ old, data, reason string }{
		"rotated tokens":       {tokens, `{"tokens":{"access_token":"b","refresh_token":"s","account_id":"me"}}`, ""},
		"more than before":     {tokens, `{"tokens":{"access_token":"b","refresh_token":"s","id_token":"i"},"x":1}`, ""},
		"full over blank":      {`{"OPENAI_API_KEY":null,"tokens":null}`, tokens, ""},
		"full over nothing":    {`{}`, key, ""},
		"full over torn":       {`{"tok`, tokens, ""},
		"unknown format":       {`{"token":"a"}`, `{"token":"b"}`, ""},
		"agent identity":       {`{"agent_identity":{"agent_private_key":"p"}}`, `{"agent_identity":{"agent_private_key":"q"}}`, ""},
		"account named later":  {key, `{"OPENAI_API_KEY":"k","tokens":{"account_id":"me"}}`, ""},
		"empty":                {tokens, ``, "is not valid JSON"},
		"torn":                 {tokens, `{"tokens":{"access_token":"b"`, "is not valid JSON"},
		"two documents":        {tokens, tokens + tokens, "is not valid JSON"},
		"invalid UTF-8":        {key, "{\"OPENAI_API_KEY\":\"\xff\"}", "is not valid JSON"},
		"null":                 {key, `null`, "is not a JSON object"},
		"array":                {key, `[{"OPENAI_API_KEY":"k"}]`, "is not a JSON object"},
		"string":               {key, `"OPENAI_API_KEY"`, "is not a JSON object"},
		"repeated member":      {key, `{"OPENAI_API_KEY":"k","OPENAI_API_KEY":""}`, "has a repeated member"},
		"repeated below":       {tokens, `{"tokens":{"access_token":"b","refresh_token":"s","access_token":""}}`, "has a repeated member"},
		"too deep":             {key, `{"OPENAI_API_KEY":"k","x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, "nested deeper"},
		"too long":             {key, `{"OPENAI_API_KEY":"k"}` + strings.Repeat(" ", MaxFile), "is longer than"},
		"empty object":         {key, `{}`, "would blank"},
		"key gone":             {key, `{"OPENAI_API_KEY":null,"auth_mode":"apikey"}`, "would blank"},
		"key blank":            {key, `{"OPENAI_API_KEY":" "}`, "would blank"},
		"key of another case":  {key, `{"openai_api_key":"k"}`, "would blank"},
		"key of another type":  {key, `{"OPENAI_API_KEY":1}`, "would blank"},
		"tokens gone":          {tokens, key, "would blank"},
		"tokens null":          {tokens, `{"tokens":null}`, "would blank"},
		"refresh token blank":  {tokens, `{"tokens":{"access_token":"b","refresh_token":""}}`, "would blank"},
		"tokens not an object": {tokens, `{"tokens":"b"}`, "would blank"},
		"unknown format blank": {`{"token":"a"}`, `{"other":"b"}`, "would blank"},
		"nothing over nothing": {`{}`, `{"x":1}`, "holds no credential"},
		"junk over torn":       {`{"tok`, `{"x":1}`, "holds no credential"},
		"another account":      {tokens, `{"tokens":{"access_token":"b","refresh_token":"s","account_id":"you"}}`, "another account"},
		"account is an object": {`{"tokens":{"access_token":"a","account_id":{"a":"x"}}}`, `{"tokens":{"access_token":"b","account_id":{"a":"y"}}}`, "another account"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := Codex("").checkReplacement([]byte(tt.old), []byte(tt.data))
			if tt.reason == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.reason)
			assert.NotContains(t, err.Error(), `"`, "no content in the reason")
		})
	}
}

func TestBlank(t *testing.T) {
	for _, text := range []string{`null`, `""`, `" \n"`, `[]`, `{}`, `{"a":{"b":[null,""]}}`} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(text), &v))
		assert.True(t, blank(v), text)
	}
	for _, text := range []string{`0`, `false`, `"x"`, `[0]`, `{"a":{"b":[null,"x"]}}`} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(text), &v))
		assert.False(t, blank(v), text)
	}
}

// FuzzCheckReplacement holds every accepted pair against a second reader of the format.
func FuzzCheckReplacement(f *testing.F) {
	f.Add([]byte(`{}`), []byte(`{"OPENAI_API_KEY":"k"}`))
	f.Add(chatgpt(1), chatgpt(2))
	f.Add(chatgpt(1), []byte(`{"tokens":null}`))
	f.Add([]byte(`{"OPENAI_API_KEY":"k"}`), []byte(`{"OPENAI_API_KEY":"k","a":[[{}]]}`))
	f.Add([]byte(`{"token":"a"}`), []byte(`{"token":{"b":"c"}}`))
	f.Fuzz(func(t *testing.T, old, data []byte) {
		src := Codex("")
		if src.checkReplacement(old, data) != nil {
			return
		}
		require.True(t, json.Valid(data))
		require.LessOrEqual(t, len(data), MaxFile)
		var next map[string]any
		require.NoError(t, json.Unmarshal(data, &next))
		require.False(t, blank(next))
		prev, err := decodeObject(old)
		if err != nil {
			return
		}
		if key, ok := prev["OPENAI_API_KEY"].(string); ok && strings.TrimSpace(key) != "" {
			require.NotEmpty(t, next["OPENAI_API_KEY"])
		}
		before, _ := prev["tokens"].(map[string]any)
		for _, name := range []string{"access_token", "refresh_token", "id_token"} {
			if token, ok := before[name].(string); ok && strings.TrimSpace(token) != "" {
				after, ok := next["tokens"].(map[string]any)
				require.True(t, ok)
				require.NotEmpty(t, after[name])
			}
		}
		require.NoError(t, src.checkReplacement(data, data), "what was accepted succeeds itself")
	})
}
