package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// server is the vendor, and its lines begin so. Each refresh says "asked" and waits for a line of input: "go" lets it
// be judged and answered, "swallow" lets it be judged and never answered. It then says
// "refreshed <generation>" or "reused", and "gone" when its client is gone.
type server struct {
	permits chan string
	say     func(...any)

	mu         sync.Mutex
	generation int // the one whose refresh token is not spent
}

func serve(in io.Reader, out io.Writer) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var printing sync.Mutex
	s := &server{permits: make(chan string), generation: 1, say: func(words ...any) {
		printing.Lock()
		defer printing.Unlock()
		fmt.Fprintln(out, append([]any{"vendor"}, words...)...)
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /refresh", s.refresh)
	mux.HandleFunc("GET /work", s.work)
	go func() { _ = http.Serve(l, mux) }() // ends with the process
	s.say("listening", "http://"+l.Addr().String())
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		s.permits <- lines.Text()
	}
	return 0
}

func (s *server) refresh(w http.ResponseWriter, r *http.Request) {
	var asked tokens
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	s.say("asked")
	var permit string
	select {
	case permit = <-s.permits:
	case <-r.Context().Done():
		s.say("gone")
		return
	}
	next, ok := s.rotate(asked.Refresh)
	if permit == "swallow" {
		<-r.Context().Done()
		s.say("gone")
		return
	}
	if !ok {
		http.Error(w, "refresh_token_reused", http.StatusUnauthorized)
		return
	}
	_ = json.NewEncoder(w).Encode(next)
}

// rotate spends a refresh token, which works once.
func (s *server) rotate(refresh string) (tokens, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refresh != fmt.Sprintf("refresh-%d", s.generation) {
		s.say("reused")
		return tokens{}, false
	}
	s.generation++
	s.say("refreshed", s.generation)
	return issue(s.generation, time.Hour), true
}

// work takes an access token that has not ended.
func (s *server) work(w http.ResponseWriter, r *http.Request) {
	c, err := readClaims(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || time.Now().Unix() >= c.Exp || c.Generation > s.generation {
		http.Error(w, "token_expired", http.StatusUnauthorized)
		return
	}
	fmt.Fprint(w, c.Generation)
}
