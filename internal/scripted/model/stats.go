package model

import "sync/atomic"

// Stats counts what the server did since its start. GET /mcp-agents/stats
// returns it as JSON.
type Stats struct {
	// Requests is every HTTP request but those for the stats themselves.
	Requests int64 `json:"requests"`
	// Model is the requests to a model API, whatever became of them.
	Model int64 `json:"model_requests"`
	// Open is the requests to a model API that are being answered now.
	Open int64 `json:"open"`
	// Completed is the streams sent to their terminal event.
	Completed int64 `json:"completed"`
	// Cut is the streams that a script ended early.
	Cut int64 `json:"cut"`
	// Disconnected is the streams whose client left first.
	Disconnected int64 `json:"disconnected"`
	// Refused is the HTTP errors, scripted ones and those for a bad request.
	Refused int64 `json:"refused"`
	// Unauthorized is the requests without the required key.
	Unauthorized int64 `json:"unauthorized"`
	// WebSocket is the refused upgrade tries.
	WebSocket int64 `json:"websocket"`
}

type counters struct {
	requests, model, open, completed, cut, disconnected, refused, unauthorized, webSocket atomic.Int64
}

func (c *counters) snapshot() Stats {
	return Stats{
		Requests: c.requests.Load(), Model: c.model.Load(), Open: c.open.Load(),
		Completed: c.completed.Load(), Cut: c.cut.Load(), Disconnected: c.disconnected.Load(),
		Refused: c.refused.Load(), Unauthorized: c.unauthorized.Load(), WebSocket: c.webSocket.Load(),
	}
}
