// SPDX-License-Identifier: Apache-2.0
#include "corpora/files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "corpora/given_case.h"
#include "corpora/given_folder.h"
#include "corpora/safetensors.h"
#include "corpora/text_codec.h"

namespace lossgate::corpora {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  std::string message_for(const fs::path& path) const {
    try {
      read_case_file(path, only(signature));
    } catch (const FormatError& error) {
      return std::string(error.what()).substr(path.generic_string().size());
    }
    return "no error";
  }

  std::size_t files_in_folder() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
  }

  LossSignature signature = example_signature();
  GivenFolder given;
  const fs::path& folder = given.path();
};

TEST_F(Files, AreWrittenIntoWhatIsNoFileAndThroughLinks) {
  write_file("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  write_file(folder / "first", "one");
  fs::create_symlink(folder / "first", folder / "link");
  write_file(folder / "link", "two");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_text(folder / "first"), "two");
  EXPECT_EQ(files_in_folder(), 2u);
}

TEST_F(Files, AreReadByExtensionOrElseByContent) {
  const std::string text = encode(example_case(), signature);
  const std::vector<std::byte> dump = encode_safetensors(example_case());
  const std::string id = case_id(example_case());
  for (const char* name : {"a.case", "a.txt", "a"}) {
    write_file(folder / name, text);
    EXPECT_EQ(case_id(read_case_file(folder / name, only(signature))), id) << name;
  }
  for (const char* name : {"b.safetensors", "b.dump", "b"}) {
    write_file(folder / name, dump);
    EXPECT_EQ(case_id(read_case_file(folder / name, only(signature))), id) << name;
  }
  write_file(folder / "c.case", dump);
  EXPECT_NE(message_for(folder / "c.case").find("expected"), std::string::npos);
  write_file(folder / "d.safetensors", text);
  EXPECT_EQ(message_for(folder / "d.safetensors").find(": header length: "), 0u);
}

TEST_F(Files, ThatAreNoneAreRefused) {
  EXPECT_EQ(message_for(folder / "missing.case"), ": expected a file, found none");
  EXPECT_EQ(message_for(folder), ": expected a file, found a directory");
  EXPECT_EQ(message_for("/dev/null"), ": expected a regular file, found something else");
  write_file(folder / "a.pt", "PK\3\4 and a tensor");
  EXPECT_EQ(message_for(folder / "a.pt").find(": expected a case, found what torch.save writes"),
            0u);
  write_file(folder / "empty.case", "");
  EXPECT_EQ(message_for(folder / "empty.case"), ": expected a case, found an empty file");
  write_file(folder / "empty.safetensors", "");
  EXPECT_EQ(message_for(folder / "empty.safetensors"), ": expected a case, found an empty file");
}

TEST_F(Files, ThatAreTooLargeAreRefusedUnread) {
  write_file(folder / "large.case", std::string(100, ' '));
  EXPECT_EQ(read_file(folder / "large.case", 100).size(), 100u);
  EXPECT_THROW(read_file(folder / "large.case", 99), FormatError);
  std::ofstream(folder / "sparse.case") << "x";
  fs::resize_file(folder / "sparse.case", kMaxFileBytes + 1);
  EXPECT_EQ(message_for(folder / "sparse.case"),
            ": expected at most 2147483648 bytes, found 2147483649");
}

TEST_F(Files, AreWrittenWholeOrNotAtAll) {
  write_file(folder / "new" / "a.case", "first");
  write_file(folder / "new" / "a.case", "second");
  EXPECT_EQ(read_file(folder / "new" / "a.case").size(), 6u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "new"), {}), 1);
  fs::create_directories(folder / "taken.case" / "inside");
  EXPECT_THROW(write_file(folder / "taken.case", "text"), fs::filesystem_error);
  EXPECT_EQ(files_in_folder(), 2u);  // nothing is left behind
  EXPECT_THROW(write_file("/dev/full/a.case", "text"), fs::filesystem_error);
}

TEST_F(Files, AreListedInOrderWithoutHiddenOnes) {
  for (const char* name : {"b/2.case", "b/10.case", "a.safetensors", "b.case", "c.txt", ".d.case",
                           ".hidden/e.case", "b/.part.case.12"}) {
    write_file(folder / name, "x");
  }
  std::vector<std::string> names;
  for (const fs::path& path : list_case_files(folder)) {
    names.push_back(path.lexically_relative(folder).generic_string());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a.safetensors", "b.case", "b/10.case", "b/2.case"}));
  EXPECT_THROW(list_case_files(folder / "missing"), FormatError);
  EXPECT_THROW(list_case_files(folder / "b.case"), FormatError);
}

}  // namespace
}  // namespace lossgate::corpora
