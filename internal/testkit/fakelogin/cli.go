package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// credential is auth.json, as Codex has it.
type credential struct {
	Key    *string `json:"OPENAI_API_KEY"`
	Tokens *tokens `json:"tokens,omitempty"`
}

// cli is the CLI with its own copy of a login.
type cli struct {
	path   string // of auth.json
	server string // the token server's address
	http   http.Client
}

// runCLI does what its input says, line by line, and answers each with a line:
//
//	turn       does some work, after a refresh if the access token ends within 5 minutes
//	show       answers with auth.json
//	save KIND  makes auth.json something that a CLI would not
func runCLI(in io.Reader, out io.Writer) int {
	c := &cli{path: filepath.Join(os.Getenv("CODEX_HOME"), "auth.json"), server: os.Getenv("FAKELOGIN_SERVER"),
		http: http.Client{Transport: &http.Transport{}}} // no proxy
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		var answer string
		var err error
		switch word {
		case "turn":
			answer, err = c.turn()
		case "show":
			var data []byte
			data, err = os.ReadFile(c.path)
			answer = string(data)
		case "save":
			answer, err = "saved "+rest, c.save(rest)
		default:
			err = fmt.Errorf("unknown command %q", word)
		}
		if err != nil {
			answer = "error: " + err.Error()
		}
		fmt.Fprintln(out, strings.ReplaceAll(answer, "\n", " "))
	}
	return 0
}

func (c *cli) read() (credential, error) {
	var auth credential
	data, err := os.ReadFile(c.path)
	if err == nil {
		err = json.Unmarshal(data, &auth)
	}
	if err == nil && auth.Tokens == nil {
		err = errors.New("auth.json has no tokens")
	}
	return auth, err
}

func (c *cli) turn() (string, error) {
	auth, err := c.read()
	if err != nil {
		return "", err
	}
	now, err := readClaims(auth.Tokens.Access)
	if err != nil {
		return "", err
	}
	if time.Until(time.Unix(now.Exp, 0)) < 5*time.Minute {
		if auth.Tokens, err = c.refresh(auth.Tokens); err != nil {
			return "", err
		}
		if err := c.write(auth); err != nil {
			return "", err
		}
	}
	generation, err := c.call(http.MethodGet, "/work", auth.Tokens.Access, nil)
	return "worked with " + string(generation), err
}

func (c *cli) refresh(old *tokens) (*tokens, error) {
	body, _ := json.Marshal(old)
	answer, err := c.call(http.MethodPost, "/refresh", "", body)
	if err != nil {
		return nil, fmt.Errorf("logged out: %w", err)
	}
	next := &tokens{}
	return next, json.Unmarshal(answer, next)
}

func (c *cli) call(method, path, bearer string, body []byte) ([]byte, error) {
	req, err := http.NewRequest(method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(answer)))
	}
	return answer, err
}

// write overwrites the file in place, as Codex does: for a moment it is empty.
func (c *cli) write(auth credential) error {
	data, err := json.MarshalIndent(auth, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.path, data, 0o600)
}
