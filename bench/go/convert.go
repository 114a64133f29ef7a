package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
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

// convert makes a protobuf corpus of a JSON corpus, by the codecs of client-go itself. The format is described in rig/src/corpus.rs.
func convert(in, out string) error {
	bytesIn, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	var states [][]byte
	for at := header; at < len(bytesIn); {
		length := int(binary.LittleEndian.Uint32(bytesIn[at:]))
		states = append(states, bytesIn[at+8:at+8+length])
		at += 8 + length
	}
	converted := make([][]byte, len(states))
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
					failure = fmt.Errorf("object %d: %w", i, err)
					mutex.Unlock()
					return
				}
				converted[i] = one
			}
		})
	}
	group.Wait()
	if failure != nil {
		return failure
	}
	var corpus bytes.Buffer
	corpus.Write(bytesIn[:header])
	for _, one := range converted {
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
		corpus.Write(numbers[:])
		corpus.Write(one)
	}
	return os.WriteFile(out, corpus.Bytes(), 0o644)
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
