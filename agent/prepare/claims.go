package prepare

import "sync"

// Claims tells which devices the agent is working on right now. The zero value is ready to use; it
// is safe for concurrent use.
type Claims struct {
	mu   sync.Mutex
	held map[string]string
}

// Reason returns why the device with this ID is being worked on, as a sentence, or "".
func (c *Claims) Reason(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[id]
}

// Hold claims devices until the returned function is called.
func (c *Claims) Hold(ids []string, reason string) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = map[string]string{}
	}
	for _, id := range ids {
		c.held[id] = reason
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, id := range ids {
			delete(c.held, id)
		}
	}
}
