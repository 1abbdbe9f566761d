// Package writes says what keeps clients from reading and writing a pool, a file system or an object store of Ceph,
// whose fault that is, and the command that mends it. It is pure.
package writes

import (
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Word is how something stands.
type Word struct {
	State api.ResourceState
	// Reason is the cause, Text says it in a sentence, and Next is what to do; all are empty where all is well.
	Reason     api.Reason
	Text, Next string
}

// well is without a cause.
var well = Word{State: api.ResourceOnline}

// Note is what is said of something that serves.
func Note(reason api.Reason, text, next string) Word {
	return Word{State: api.ResourceOnline, Reason: reason, Text: text, Next: next}
}

// Or is what else there is to say where all is well.
func (w Word) Or(other Word) Word {
	if w == well && other.Reason != "" {
		return other
	}
	return w
}

// Put writes the word into a resource's status.
func (w Word) Put(s *api.ResourceStatus) {
	s.State, s.Reason, s.Message, s.Next = w.State, w.Reason, w.Text, words.Cut(w.Next, maxNext)
}

// maxNext is a bound of the API's schema, in bytes.
const maxNext = 1024

// Also adds what else there is to say. The first cause keeps its reason and its next step.
func (w Word) Also(texts ...string) Word {
	for _, text := range texts {
		switch {
		case text == "":
		case w.Text == "":
			w.Text = text
		default:
			w.Text += "; " + text
		}
	}
	return w
}

// After puts what holds up a resource by Holdfast's own word before what Ceph says of it.
func (w Word) After(texts ...string) Word {
	return Word{State: w.State, Reason: w.Reason, Next: w.Next}.Also(append(texts, w.Text)...)
}

// And is how something stands of which there are two words: the worse one's reason and next step count.
func (w Word) And(other Word) Word {
	if rank(other.State) > rank(w.State) || w.Reason == "" {
		w.Reason, w.Next = other.Reason, other.Next
	}
	w.State = Worse(w.State, other.State)
	return w.Also(other.Text)
}

// with is how a whole stands of which one part, such as pool web, stands like that.
func (w Word) with(part, is string, of Word) Word {
	if of.Text == "" && of.State == api.ResourceOnline {
		return w
	}
	says := part + " " + is + " " + string(of.State)
	if of.State == api.ResourceOnline {
		says = part
	}
	if of.Text != "" { // a new pool has none before the manager has reported its placement groups
		says += ": " + of.Text
	}
	of.Text = says
	return w.And(of)
}

// order has the states from the best to the worst.
var order = []api.ResourceState{
	api.ResourceOnline, api.ResourceDegraded, api.ResourceCreating, api.ResourcePending, api.ResourceOffline,
}

func rank(s api.ResourceState) int {
	for i := range order {
		if order[i] == s {
			return i
		}
	}
	return 0
}

// Worse is the state of two that counts for both.
func Worse(a, b api.ResourceState) api.ResourceState {
	if rank(a) > rank(b) {
		return a
	}
	return b
}

// quote is a command as a text has it.
func quote(parts ...string) string { return "'" + strings.Join(parts, " ") + "'" }
