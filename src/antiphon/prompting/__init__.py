"""From a conversation to token ids and back to text: templates, tokenizers, detokenizers."""
