package prepare

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/holdfast-storage/holdfast/agent/service"
)

// word matches what is replaced in commands, parameters and the text of files. What looks alike but
// is not known stays as it is: it may mean something to the program.
var word = regexp.MustCompile(`\$\{(DATA|RUN|LOG|DEVICE:([^}]+))\}`)

// replaceWords puts the places on this host into a text. A device that is not there is an error.
func replaceWords(text string, l *service.Local) (string, error) {
	var errs []error
	out := word.ReplaceAllStringFunc(text, func(w string) string {
		m := word.FindStringSubmatch(w)
		switch m[1] {
		case "DATA":
			return l.Data
		case "RUN":
			return l.Run
		case "LOG":
			return l.Log
		}
		dev, ok := l.Devices[m[2]]
		if !ok {
			errs = append(errs, fmt.Errorf("%s is used, but the Daemon has no such device", w))
		}
		return dev.Path
	})
	return out, errors.Join(errs...)
}

// FillWords sets the command and the parameters of a place, as far as the devices that they name
// are there.
func FillWords(l *service.Local) error {
	l.Command = make([]string, len(l.Daemon.Spec.Command))
	l.Parameters = make(map[string]string, len(l.Daemon.Spec.Parameters))
	var errs []error
	fill := func(text string) string {
		out, err := replaceWords(text, l)
		errs = append(errs, err)
		return out
	}
	for i, arg := range l.Daemon.Spec.Command {
		l.Command[i] = fill(arg)
	}
	for key, value := range l.Daemon.Spec.Parameters {
		l.Parameters[key] = fill(value)
	}
	return errors.Join(errs...)
}
