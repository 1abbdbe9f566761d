package runtime

import "sync"

// Notifier carries the names of changed processes to one reader. Notify never blocks; names that the reader has not yet
// taken are kept once each. It is safe for concurrent use.
type Notifier struct {
	out  chan string
	wake chan struct{}
	done chan struct{}
	end  sync.WaitGroup

	mu      sync.Mutex
	pending []string
}

// NewNotifier returns a Notifier, which must be closed.
func NewNotifier() *Notifier {
	n := &Notifier{out: make(chan string), wake: make(chan struct{}, 1), done: make(chan struct{})}
	n.end.Go(n.pump)
	return n
}

// C is where the names come out. It is never closed.
func (n *Notifier) C() <-chan string { return n.out }

// Notify puts a name into the line, unless it waits there already.
func (n *Notifier) Notify(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.pending {
		if p == name {
			return
		}
	}
	n.pending = append(n.pending, name)
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Close ends the delivery.
func (n *Notifier) Close() {
	close(n.done)
	n.end.Wait()
}

func (n *Notifier) pump() {
	for {
		name, ok := n.take()
		if !ok {
			select {
			case <-n.wake:
				continue
			case <-n.done:
				return
			}
		}
		select {
		case n.out <- name:
		case <-n.done:
			return
		}
	}
}

// take removes the first name before it is delivered, so that a change during the delivery is told again.
func (n *Notifier) take() (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.pending) == 0 {
		return "", false
	}
	name := n.pending[0]
	n.pending = n.pending[1:]
	return name, true
}
