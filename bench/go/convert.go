package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	header      = 20
	placeholder = "7777777777"
)

// So many states are converted at a time: a large corpus need not fit into memory.
const batch = 8192

// convert converts a JSON corpus to protobuf, with the codecs of client-go. The format is described
// in rig/src/corpus.rs.
func convert(in, out string) error {
	from, err := os.Open(in)
	if err != nil {
		return err
	}
	defer from.Close()
	// Half a corpus would be taken for a whole one.
	unfinished := out + ".unfinished"
	to, err := os.Create(unfinished)
	if err != nil {
		return err
	}
	defer to.Close()
	reader, writer := bufio.NewReaderSize(from, 1<<20), bufio.NewWriterSize(to, 1<<20)
	head := make([]byte, header)
	if _, err := io.ReadFull(reader, head); err != nil {
		return err
	}
	writer.Write(head)
	for left := 2 * int(binary.LittleEndian.Uint32(head[16:])); left > 0; {
		states := make([][]byte, min(left, batch))
		left -= len(states)
		for i := range states {
			var numbers [8]byte
			if _, err := io.ReadFull(reader, numbers[:]); err != nil {
				return err
			}
			states[i] = make([]byte, binary.LittleEndian.Uint32(numbers[:]))
			if _, err := io.ReadFull(reader, states[i]); err != nil {
				return err
			}
		}
		if err := convertAll(states); err != nil {
			return err
		}
		for _, one := range states {
			version := 0
			if len(one) > 0 {
				// The field's tag, its length, the ten digits.
				version = bytes.Index(one, []byte("\x32\x0a"+placeholder)) + 2
				if version < 2 {
					return fmt.Errorf("an object without its version")
				}
			}
			var numbers [8]byte
			binary.LittleEndian.PutUint32(numbers[:], uint32(len(one)))
			binary.LittleEndian.PutUint32(numbers[4:], uint32(version))
			writer.Write(numbers[:])
			writer.Write(one)
		}
	}
	// The order of the objects is the same.
	if _, err := io.Copy(writer, reader); err != nil {
		return err
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	return os.Rename(unfinished, out)
}

// convertAll converts all of them in their places.
func convertAll(states [][]byte) error {
	var failure error
	var mutex sync.Mutex
	var group sync.WaitGroup
	workers := runtime.NumCPU()
	for worker := range workers {
		group.Go(func() {
			for i := worker; i < len(states); i += workers {
				one, err := toProtobuf(states[i])
				if err != nil {
					mutex.Lock()
					failure = err
					mutex.Unlock()
					return
				}
				states[i] = one
			}
		})
	}
	group.Wait()
	return failure
}

func toProtobuf(object []byte) ([]byte, error) {
	if len(object) == 0 {
		return nil, nil
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(object, nil, nil)
	if err != nil {
		return nil, err
	}
	marshaler, ok := decoded.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf", decoded)
	}
	var _ k8sruntime.Object = decoded
	return marshaler.Marshal()
}
