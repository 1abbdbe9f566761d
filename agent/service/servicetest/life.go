package servicetest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service/tool"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/failpoint"
)

// effect is something that lasts: a file that was written, a program that was run.
type effect struct {
	what string
	// where is the place in the code.
	where string
	// took is how long a program ran; 0 for anything else.
	took time.Duration
}

func (e effect) String() string { return e.what }

// amid are times at which a program is killed: one that takes long does several things.
func (e effect) amid() []time.Duration {
	switch {
	case e.took == 0:
		return nil
	case e.took < 20*time.Millisecond:
		return []time.Duration{e.took / 2}
	}
	return []time.Duration{e.took / 4, e.took / 2, e.took * 3 / 4}
}

// life is an agent's. It ends before one of its effects, or amid it if that is a program, which is killed as well; its goroutines go no further than to the
// next effect.
type life struct {
	t       *testing.T
	code    []*failpoint.Points
	secrets []string
	// at is the effect at which it ends, from 1; 0 for never.
	at int
	// amid is after how long the program is killed; 0 for before it begins.
	amid time.Duration
	// cut is called in the place of a death, if it is set.
	cut func()

	mu      sync.Mutex
	effects []effect
	dead    bool
}

// run has something done in a goroutine that can die, and says whether it did.
func (l *life) run(do func() error) (killed bool, err error) {
	defer atomicfile.Watch("", l.file)()
	defer tool.Watch(l.program)()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = do()
	}()
	<-ended
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead, err
}

func (l *life) file(do func() error) error {
	l.reach("a file", 0)
	return do()
}

// asks are programs, with their first arguments, that change nothing.
var asks = [][]string{
	{"sfdisk", "--json"},
	{"blkid"},
	{"monmaptool", "--print"},
	{"ceph-kvstore-tool"},
	{"cryptsetup", "isLuks"},
	{"cryptsetup", "luksDump"},
	{"glfsheal"},
	{"glusterd", "--print-libexecdir"},
	{"torusctl", "list-peers"},
	{"torusctl", "volume", "list"},
	{"torusctl", "ring", "get"},
	{"torusctl", "init", "--view"},
}

// askWords are what gluster and rbd are asked for without a change, by the words before and after what is asked about ("*", one word or several).
var askWords = map[string][][]string{
	"gluster": {
		{"peer", "status"},
		{"pool", "list"},
		{"volume", "info"},
		{"volume", "status"},
		{"volume", "list"},
		{"volume", "get"},
		{"volume", "rebalance", "*", "status"},
		{"volume", "remove-brick", "*", "status"},
		{"volume", "quota", "*", "list"},
	},
	"rbd": {{"mirror", "pool", "info"}, {"mirror", "pool", "status"}},
}

func isQuestion(args []string) bool {
	program := filepath.Base(args[0])
	if all, ok := askWords[program]; ok {
		words := withoutOptions(args[1:])
		return slices.ContainsFunc(all, func(ask []string) bool { return begins(words, ask) })
	}
	return slices.Contains(args, "--version") || slices.ContainsFunc(asks, func(a []string) bool {
		return a[0] == program && len(args) >= len(a) && slices.Equal(a[1:], args[1:len(a)])
	})
}

// withoutOptions leaves out the options before the first word; -c and -n are Ceph's, with a value each.
func withoutOptions(args []string) []string {
	for len(args) > 1 && strings.HasPrefix(args[0], "-") {
		n := 1
		if args[0] == "-c" || args[0] == "-n" {
			n = 2
		}
		args = args[n:]
	}
	return args
}

// begins says whether words begin with those of a question. After what is asked about, its last word is the last of all.
func begins(words, ask []string) bool {
	about := slices.Index(ask, "*")
	if about < 0 {
		return len(words) >= len(ask) && slices.Equal(words[:len(ask)], ask)
	}
	return len(words) >= len(ask) && slices.Equal(words[:about], ask[:about]) && words[len(words)-1] == ask[about+1]
}

func (l *life) program(cmd *exec.Cmd, run func() error) error {
	for _, secret := range l.secrets {
		if slices.ContainsFunc(cmd.Args, func(a string) bool { return strings.Contains(a, secret) }) {
			l.t.Errorf("a secret is among the arguments of %s", cmd.Args[0])
		}
	}
	if isQuestion(cmd.Args) {
		l.dies(false)
		l.note()
		return run()
	}
	what := strings.Join(cmd.Args, " ")
	n := l.reach(what[:min(len(what), 120)], l.amid)
	if n == l.at && l.amid > 0 {
		l.killSoon(cmd)
		_ = run() // nobody lives to see it
		l.dies(true)
	}
	begin := time.Now()
	err := run()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.effects[n-1].took = time.Since(begin)
	return err
}

// killSoon has a program killed while it runs.
func (l *life) killSoon(cmd *exec.Cmd) {
	timeout, err := exec.LookPath("timeout")
	if err != nil {
		l.t.Errorf("to kill a program while it runs: %v", err)
		return
	}
	cmd.Args = append([]string{"timeout", "-s", "KILL", fmt.Sprintf("%.3f", l.amid.Seconds()), cmd.Path}, cmd.Args[1:]...)
	cmd.Path = timeout
}

func (l *life) here() string {
	var at []string
	for _, c := range l.code {
		at = append(at, c.Here())
	}
	return strings.Join(at, " ")
}

// reach comes to an effect, and goes on unless it is the last one's time.
func (l *life) reach(what string, amid time.Duration) (n int) {
	where := l.here()
	l.mu.Lock()
	dead := l.dead
	if !dead {
		l.effects = append(l.effects, effect{what: what + " at " + where, where: where})
	}
	n = len(l.effects)
	l.mu.Unlock()
	switch {
	case dead:
		runtime.Goexit()
	case n != l.at:
		return n
	}
	l.note()
	switch {
	case l.cut != nil:
		l.cut()
	case amid == 0:
		l.dies(true)
	}
	return n
}

func (l *life) note() {
	for _, c := range l.code {
		c.Note()
	}
}

// dies ends the goroutine if the agent is dead, or is to be.
func (l *life) dies(now bool) {
	l.mu.Lock()
	l.dead = l.dead || now
	dead := l.dead
	l.mu.Unlock()
	if dead {
		runtime.Goexit()
	}
}
