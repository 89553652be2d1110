package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTakeCopiesOnlyTheNamedFiles(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	write(t, filepath.Join(dir, "models_cache.json"), []byte(`{"models":[]}`))
	write(t, filepath.Join(dir, "config.toml"), []byte(`model = "private"`))
	write(t, filepath.Join(dir, "history.jsonl"), []byte(`{"prompt":"private"}`))

	s := take(t, src)
	assert.Equal(t, []File{
		{Name: "auth.json", Mode: 0o600, Data: chatgpt(1)},
		{Name: "models_cache.json", Mode: 0o600, Data: []byte(`{"models":[]}`)},
	}, s.Files())
	assert.NoError(t, s.Missing())
	assert.Empty(t, s.Skipped())
}

func TestFilesBelongToTheCaller(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	s := take(t, src)
	clear(s.Files()[0].Data)
	assert.Equal(t, chatgpt(1), s.Files()[0].Data)
	o, err := s.WriteBack(t.Context(), "auth.json", chatgpt(2))
	require.NoError(t, err)
	assert.Equal(t, Written, o.Status, "the remembered version must not be the caller's slice")
	requireCanonical(t, dir, chatgpt(2))
}

func TestTakeWithoutAFile(t *testing.T) {
	tests := map[string]struct {
		env  []string
		want string // the credential, or "" for the empty snapshot
	}{
		"nothing":                 {nil, ""},
		"blank keys":              {[]string{"CODEX_API_KEY", " ", "OPENAI_API_KEY", ""}, ""},
		"the provider's own key":  {[]string{"CODEX_API_KEY", "first", "OPENAI_API_KEY", "second"}, `{"OPENAI_API_KEY":"first"}`},
		"the general key":         {[]string{"OPENAI_API_KEY", "second"}, `{"OPENAI_API_KEY":"second"}`},
		"a newline is not a key":  {[]string{"CODEX_API_KEY", "key\n"}, `{"OPENAI_API_KEY":"key"}`},
		"a key that needs quotes": {[]string{"CODEX_API_KEY", `k"\`}, `{"OPENAI_API_KEY":"k\"\\"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			src, dir := newHome(t, nil)
			src.Getenv = variables(tt.env...)
			s := take(t, src)
			if tt.want == "" {
				assert.Empty(t, s.Files())
				var missing *MissingError
				require.ErrorAs(t, s.Missing(), &missing)
				assert.Equal(t, filepath.Join(dir, "auth.json"), missing.Path)
				assert.Equal(t, "Codex login is missing: "+missing.Path+" does not exist; run codex login "+
					"as this user, or set CODEX_API_KEY or OPENAI_API_KEY", missing.Error())
				return
			}
			require.NoError(t, s.Missing())
			require.Len(t, s.Files(), 1)
			assert.Equal(t, "auth.json", s.Files()[0].Name)
			assert.JSONEq(t, tt.want, string(s.Files()[0].Data))
		})
	}
}

func TestTakeWithoutADirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, nil)
	for _, dir := range []string{filepath.Join(t.TempDir(), "absent"), file, filepath.Join(file, "below")} {
		src := Codex(dir)
		src.Getenv = noVariables
		s := take(t, src)
		assert.Empty(t, s.Files())
		assert.Error(t, s.Missing())
	}
}

func TestAKeyNeverStandsInForAFile(t *testing.T) {
	src, _ := newHome(t, chatgpt(1))
	src.Getenv = variables("CODEX_API_KEY", "key")
	assert.Equal(t, chatgpt(1), take(t, src).Files()[0].Data)
}

func TestMissingSaysWhatIsWrongWithAFile(t *testing.T) {
	tests := map[string]struct{ content, reason string }{
		"empty file":      {"", "is not valid JSON"},
		"torn file":       {`{"tokens":{"access`, "is not valid JSON"},
		"not an object":   {`["x"]`, "is not a JSON object"},
		"no token field":  {`{"auth_mode":"chatgpt"}`, "holds no credential"},
		"blank tokens":    {`{"OPENAI_API_KEY":null,"tokens":{"access_token":"","refresh_token":" "}}`, "holds no credential"},
		"repeated member": {`{"OPENAI_API_KEY":"a","OPENAI_API_KEY":"b"}`, "has a repeated member"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			src, _ := newHome(t, []byte(tt.content))
			s := take(t, src)
			require.Len(t, s.Files(), 1, "it is the CLI that has the last word")
			var missing *MissingError
			require.ErrorAs(t, s.Missing(), &missing)
			assert.Equal(t, tt.reason, missing.Reason)
			assert.Equal(t, "run codex login as this user", missing.Remedy)
		})
	}
}

func TestTakeSizeLimit(t *testing.T) {
	exact := append(chatgpt(1), bytes.Repeat([]byte(" "), MaxFile-len(chatgpt(1)))...)
	src, dir := newHome(t, exact)
	assert.Len(t, take(t, src).Files()[0].Data, MaxFile)

	path := filepath.Join(dir, "auth.json")
	write(t, path, append(exact, ' '))
	_, err := Take(t.Context(), src)
	require.ErrorContains(t, err, path+": is longer than 1047552 bytes")
	assert.NotContains(t, err.Error(), "access-1")

	// The limit leaves room for a frame's name and mode.
	assert.Less(t, MaxFile+512, 1<<20)
}

func TestTakeRefusesWhatIsNoRegularFile(t *testing.T) {
	src, dir := newHome(t, nil)
	path := filepath.Join(dir, "auth.json")
	require.NoError(t, os.Mkdir(path, 0o700))
	_, err := Take(t.Context(), src)
	assert.EqualError(t, err, "copy Codex login: "+path+" is not a regular file: remove it and "+src.Remedy)
}

func TestExtrasAreBestEffortButNotSilent(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	write(t, filepath.Join(dir, "models_cache.json"), make([]byte, MaxFile+1))
	s := take(t, src)
	assert.Len(t, s.Files(), 1)
	require.Len(t, s.Skipped(), 1)
	assert.ErrorContains(t, s.Skipped()[0], "models_cache.json")
}

func TestTakeEndsWithItsContext(t *testing.T) {
	src, _ := newHome(t, chatgpt(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Take(ctx, src)
	assert.ErrorIs(t, err, context.Canceled)
}

// TestNextTakeSeesARotation: the user's CLI replaces its file by a rename while a snapshot is
// in use; a mount of the file would keep showing the old one.
func TestNextTakeSeesARotation(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	take(t, src)
	next := filepath.Join(dir, "next")
	write(t, next, chatgpt(2))
	require.NoError(t, os.Rename(next, filepath.Join(dir, "auth.json")))
	assert.Equal(t, chatgpt(2), take(t, src).Files()[0].Data)
}

func TestKeySnapshotIsAnObject(t *testing.T) {
	src, _ := newHome(t, nil)
	src.Getenv = variables("OPENAI_API_KEY", "<&>")
	var doc map[string]string
	require.NoError(t, json.Unmarshal(take(t, src).Files()[0].Data, &doc))
	assert.Equal(t, map[string]string{"OPENAI_API_KEY": "<&>"}, doc)
}
