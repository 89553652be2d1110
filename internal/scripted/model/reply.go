package model

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// apiError is an error body in OpenAI's shape, which CLIs show to the user.
type apiError struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Code    *string `json:"code"`
	} `json:"error"`
}

// writeError answers with an error object; code may be "".
func writeError(w http.ResponseWriter, status int, message, code string) {
	var body apiError
	body.Error.Message, body.Error.Type = message, "invalid_request_error"
	if code != "" {
		body.Error.Code = &code
	}
	writeJSON(w, status, body)
}

// writeStatus answers as a status step says.
func writeStatus(w http.ResponseWriter, s Status) {
	if s.Body == nil {
		writeError(w, s.Code, fmt.Sprintf("scripted error %d", s.Code), "")
		return
	}
	writeJSON(w, s.Code, json.RawMessage(s.Body))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := encodeJSON(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error here means that the client left; there is nobody to tell.
	_, _ = w.Write(body)
}
