#include <map>
#include <string>
std::map<int,std::string> m; int main(){return m.size();}
